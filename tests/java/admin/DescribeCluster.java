import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * Asks Java's Admin of rights, quotas, users, tokens and the cluster, or of the quorum alone; a line for each fact.
 * What grows while one asks is told as such.
 */
public final class DescribeCluster {
    public static void main(String[] args) throws Exception {
        if (args.length == 1) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
                quorum(admin);
            }
            return;
        }
        String jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"" + args[2]
            + "\" password=\"" + args[3] + "\";";
        Map<String, Object> login = Map.of("bootstrap.servers", args[1], "security.protocol", "SASL_PLAINTEXT",
            "sasl.mechanism", "SCRAM-SHA-256", "sasl.jaas.config", jaas);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0])); Admin owner = Admin.create(login)) {
            rights(admin);
            tokens(owner);
            cluster(admin);
        }
    }

    private static void rights(Admin admin) throws Exception {
        admin.describeAcls(AclBindingFilter.ANY).values().get().forEach(it -> fact("acl",
            it.pattern().resourceType(), it.pattern().name(), it.pattern().patternType(), it.entry().principal(),
            it.entry().host(), it.entry().operation(), it.entry().permissionType()));
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, quotas) -> {
            String who = new TreeMap<>(entity.entries()).entrySet().stream()
                .map(it -> it.getKey() + "=" + (it.getValue() == null ? "default" : it.getValue()))
                .collect(Collectors.joining(";"));
            quotas.forEach((key, value) -> fact("quota", who, key, value));
        });
        admin.describeUserScramCredentials().all().get().forEach((user, it) -> it.credentialInfos().forEach(
            each -> fact("user", user, each.mechanism(), each.iterations())));
    }

    private static void tokens(Admin owner) throws Exception {
        owner.describeDelegationToken().delegationTokens().get().forEach(it -> fact("token",
            it.tokenInfo().tokenId(), it.hmacAsBase64String(), it.tokenInfo().owner(), it.tokenInfo().tokenRequester(),
            it.tokenInfo().issueTimestamp(), it.tokenInfo().expiryTimestamp(), it.tokenInfo().maxTimestamp(),
            it.tokenInfo().renewers().stream().map(Object::toString).collect(Collectors.joining(";"))));
    }

    private static void cluster(Admin admin) throws Exception {
        var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true)
            .includeFencedBrokers(true));
        fact("cluster", cluster.clusterId().get(), cluster.controller().get().id(), cluster.authorizedOperations()
            .get().stream().map(Enum::name).sorted().collect(Collectors.joining(";")));
        cluster.nodes().get().forEach(it -> fact("node", it.id(), it.host(), it.port(), it.rack(), it.isFenced()));
        var features = admin.describeFeatures().featureMetadata().get();
        fact("growing", "features", features.finalizedFeaturesEpoch().get());
        features.finalizedFeatures().forEach((name, it) ->
            fact("finalized", name, it.minVersionLevel(), it.maxVersionLevel()));
        features.supportedFeatures().forEach((name, it) -> fact("supported", name, it.minVersion(), it.maxVersion()));
        quorum(admin);
    }

    private static void quorum(Admin admin) throws Exception {
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        fact("quorum", quorum.leaderId(), quorum.leaderEpoch());
        fact("growing", "high watermark", quorum.highWatermark());
        quorum.voters().forEach(it -> replica("voter", it));
        quorum.observers().forEach(it -> replica("observer", it));
        quorum.nodes().forEach((id, node) -> node.endpoints().forEach(it ->
            fact("endpoint", id, it.listener(), it.host(), it.port())));
    }

    private static void replica(String what, QuorumInfo.ReplicaState it) {
        fact(what, it.replicaId(), it.replicaDirectoryId());
        fact("growing", "end of " + it.replicaId(), it.logEndOffset());
        it.lastFetchTimestamp().ifPresent(time -> fact("growing", "fetch of " + it.replicaId(), time));
        it.lastCaughtUpTimestamp().ifPresent(time -> fact("growing", "caught up " + it.replicaId(), time));
    }

    private static void fact(Object... parts) {
        System.out.println(Arrays.stream(parts).map(String::valueOf).collect(Collectors.joining("\t")));
    }
}
