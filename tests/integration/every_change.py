"""Which of these tests run on a real Kafka with every change.

All of them run on every Kafka at night (``nox -s nightly``), and on the embedded broker
with every change unless they say why not (``not_embedded``). A test is named here if

- only a real broker, or Java, can judge what it shows, and it takes a few seconds; or
- it shows what has to work on a real Kafka whatever was changed: to produce, consume,
  commit and rebalance by either group protocol, to hand partitions over, to lose a
  leader or a coordinator, to connect by TLS.

A name stands for all cases of a test, or with its brackets for one of them, but never
for those that have an embedded broker of their own. Together they take two minutes on
the newest Kafka, and one on the oldest: whoever adds one looks at the time
(``--durations=0``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: By file. ``nox -s "integration(kafka='4.4')"``.
ON_THE_NEWEST: Final[Mapping[str, tuple[str, ...]]] = {
    "test_admin_cluster.py": (
        "test_controllers_alone",
        "test_quotas_are_set_seen_and_removed",
        "test_rights_come_and_go",
        "test_the_life_of_a_token",
    ),
    "test_admin_configs.py": ("test_single_configs_are_changed",),
    "test_admin_groups.py": ("test_a_group_is_described", "test_offsets_are_reset"),
    "test_admin_java.py": ("test_it_tells_what_javas_tells",),
    "test_admin_partitions.py": (
        "test_elections",
        "test_offsets_and_deleted_records",
        "test_replicas_are_moved",
    ),
    "test_admin_share_groups.py": (
        "test_a_streams_group",
        "test_offsets_of_a_share_group",
    ),
    "test_admin_table.py": ("test_the_table_has_every_operation_of_java",),
    "test_admin_topics.py": ("test_a_topic_from_its_creation_to_its_end",),
    "test_authorization.py": (
        "test_who_may_not_join_a_group",
        "test_who_may_not_produce",
        "test_who_may_not_read_a_topic",
        "test_who_may_not_use_a_transactional_id",
        "test_who_may_only_see_a_topic_gets_no_id",
    ),
    "test_cli_groups.py": (
        "test_lag",
        "test_where_offsets_go",
    ),
    "test_cli_ops.py": (
        "test_a_throttle_goes_when_all_have_moved",
        "test_subscriptions_of_client_metrics",
    ),
    "test_cli_topics.py": ("test_the_life_of_topics",),
    "test_client.py": (
        "test_every_destination",
        "test_many_at_once",
        "test_views",
    ),
    "test_commits.py": (
        "test_a_commit_of_the_last_batch_leaves_no_lag",
        "test_a_deleted_topic_does_not_stop_transactions",
        "test_a_deleted_topic_is_released_and_the_other_committed",
    ),
    "test_confluent_serializers.py": ("test_they_are_told_the_topic",),
    "test_consumer.py": (
        "test_a_leader_that_is_killed_and_restarted",
        "test_a_record_after_start_is_seen",
        "test_a_thousand_commits_at_once",
        "test_a_time_before_now_on_an_empty_topic",
        "test_auto_commit_and_resume",
        "test_every_codec",
        "test_pause_resume_and_seek",
        "test_read_committed",
        "test_the_replica_in_the_own_rack_is_read_from",
        "test_two_members_share_a_topic",
    ),
    "test_consumer_places.py": (
        "test_a_policy_says_where_to_begin",
        "test_what_fetches_told_is_what_the_leaders_say",
    ),
    "test_consumer_protocol.py": (
        "test_a_group_migrates_member_by_member",
        "test_a_member_that_is_thrown_out_comes_back",
        "test_a_static_member_finds_its_place_again",
        "test_beside_a_java_member",
        "test_members_come_and_go_and_nothing_is_lost_or_repeated",
        "test_the_brokers_assignors",
        "test_we_join_a_classic_group_of_java",
        "test_who_does_not_poll_leaves_and_comes_back",
    ),
    "test_deferred_revoke.py": (
        "test_closing_hands_over_what_is_held",
        "test_finished_records_are_committed_before_they_move",
        "test_the_others_run_on_while_partitions_are_handed_over",
    ),
    "test_docstrings.py": ("test_a_java_program",),
    "test_embedded_clients.py": (
        "test_aiokafka",
        "test_confluent",
        "test_kafkaio",
        "test_nothing_is_lost_or_repeated_through_faults",
    ),
    "test_embedded_groups.py": (
        "test_members_go_on_after_a_restart_of_everything",
        "test_members_of_aiokafka",
    ),
    "test_embedded_java.py": ("test_console_producer_and_consumer",),
    "test_embedded_security.py": ("test_confluent",),
    "test_embedded_transactions.py": ("test_confluent_copies_exactly_once",),
    "test_exactly_once.py": ("test_each_way_once",),
    "test_group.py": (
        "test_a_partition_moves_without_loss_or_repetition",
        "test_a_pattern_and_a_new_topic",
        "test_an_assignor_of_our_own",
        "test_partitions_that_are_added_begin_at_their_start",
        "test_the_coordinator_dies",
        "test_the_tool_shows_our_member_and_its_offsets",
        # Whose assignors agree is for the members; all pairs meet on the embedded one.
        "test_three_members_one_of_them_java[cooperative-sticky]",
        "test_three_members_one_of_them_java[range]",
        "test_who_divides_otherwise_is_told_how_the_group_does",
    ),
    "test_group_assignors.py": ("test_the_shares_are_those_of_java",),
    "test_kafka_fixture.py": (
        "test_a_cancelled_start_leaves_nothing",
        "test_nothing_is_left_after_the_block",
    ),
    "test_jaas_java.py": ("test_java_reads_the_same",),
    "test_log_files.py": ("test_kafkas_log_dump_reads_ours",),
    "test_odd_batches.py": (
        "test_a_batch_of_80_megabytes_is_read",
        "test_kafka_and_we_agree_on_bytes_behind_the_data",
    ),
    "test_pains.py": ("test_every_way_to_send_and_to_read_carries_the_whole_record",),
    "test_parallel.py": ("test_members_come_and_go_and_nothing_is_done_twice",),
    # A leader that hangs or is gone takes 20 seconds. The embedded broker has both with
    # every change, and tests of producers, consumers and groups lose real leaders.
    "test_partial_failures_real.py": ("test_the_rest_goes_on[topic gone]",),
    "test_plugin.py": (
        "test_a_round_trip",
        "test_each_worker_deletes_its_topics",
    ),
    "test_producer.py": (
        "test_a_poison_record_fails_alone",
        "test_an_unknown_topic_is_named",
        "test_delivery_timeout_with_a_paused_broker",
        "test_log_append_time_is_told",
        "test_losing_a_leader_loses_repeats_and_reorders_nothing",
        "test_records_arrive_as_they_were_sent",
        "test_rows_of_a_table",
        "test_what_is_too_large_is_divided_or_fails_alone",
        "test_without_acks",
    ),
    "test_protocol_java.py": (
        "test_java_and_we_write_and_read_the_same_bytes",
        "test_the_golden_bytes_are_still_those_of_java",
    ),
    "test_logins.py": (
        "test_a_mechanism_that_is_off[OAUTHBEARER]",
        "test_a_mechanism_that_is_off[SCRAM-SHA-256]",
        # A wrong credential of each kind and mechanism; all pairs of them at night.
        *(
            f"test_a_refusal_is_told_at_once_and_counted_once[{case}]"
            for case in (
                "PLAIN-_wrong-Invalid username or password",
                "SCRAM-SHA-256-_unknown-invalid credentials with SASL mechanism",
                "SCRAM-SHA-512-_unknown_token-invalid credentials with SASL mechanism",
                "OAUTHBEARER-_foreign-invalid_token",
                "OAUTHBEARER-_ended-invalid_token",
            )
        ),
        "test_a_token_that_has_just_ended",
        "test_another_principal_at_the_next_login",
        "test_tokens_of_one_endpoint_from_three_clients",
    ),
    "test_ranges.py": (
        "test_a_client_that_is_kept_learns_of_a_topic_that_was_made_again",
        "test_a_compacted_topic",
        "test_aborted_transactions_as_librdkafka_sees_them",
        "test_random_ranges_are_what_a_consumer_reads",
        "test_the_next_answer_comes_while_the_event_loop_is_stopped",
        "test_what_clients_look_up",
    ),
    "test_raw_batches.py": (
        "test_batches_that_were_compacted",
        "test_markers_and_aborted_batches_are_left_out",
        "test_the_records_are_the_same_and_the_bytes_too",
    ),
    "test_read_to_end.py": (
        "test_deleted_records_leave_nothing_to_read",
        "test_open_transactions_are_not_waited_for",
    ),
    "test_records_java.py": (
        "test_java_finds_the_records_that_went_in",
        "test_java_reads_what_we_write",
        "test_java_wrote_the_cases_listed_here",
        "test_we_read_what_java_writes",
    ),
    "test_registry_evolution.py": (
        "test_a_change_that_is_refused_sends_nothing",
        "test_it_is_found_out_before_the_program_begins",
        "test_readers_of_both_ages_read_both",
    ),
    "test_registry_exchange.py": (
        "test_they_read_what_we_write",
        "test_we_read_what_they_write",
    ),
    "test_registry_faults.py": ("test_apicurio_dies_and_comes_back",),
    "test_registry_judgements.py": ("test_random_changes_are_judged_alike",),
    "test_rewind.py": (
        "test_three_members_go_on_from_the_new_offsets",
        "test_where_the_brokers_divide_each_moves_its_own",
    ),
    "test_share_must_hold.py": (
        "test_closing_amid_a_hundred_handlers_gives_their_records_to_others",
        "test_never_more_than_ten_of_a_batch_of_a_thousand",
        "test_offsets_are_reset_beside_a_shared_client",
        "test_poison_among_many_goes_to_the_dead_letter_and_holds_up_nothing",
    ),
    "test_tables.py": (
        "test_keys_go_where_javas_producer_sends_them",
        "test_librdkafka_reads_what_was_enqueued",
    ),
    "test_sasl.py": (
        "test_a_client_without_sasl",
        "test_a_listener_without_sasl",
        "test_sessions_of_two_seconds",
        "test_the_right_credentials",
        "test_the_wrong_credentials",
    ),
    "test_serde_java.py": ("test_java_writes_the_same",),
    "test_tls.py": (
        "test_a_broker_that_is_not_trusted",
        "test_a_broker_with_another_name",
        "test_a_certificate_that_is_replaced_while_a_producer_runs",
        "test_a_client_of_another_authority",
        "test_a_client_with_a_certificate",
        "test_a_client_with_an_expired_certificate",
        "test_a_client_without_a_certificate",
        "test_a_round_trip",
        "test_plaintext_to_a_tls_port_ends_at_once",
        "test_tls_to_a_plaintext_port_hints_at_it",
    ),
    "test_transaction_tables.py": ("test_a_row_with_every_change",),
    "test_transaction_codes.py": ("test_an_abort_whose_answer_is_lost",),
    "test_transactions.py": ("test_readers_see_what_was_committed",),
}

#: By file. ``nox -s "integration(kafka='2.1')"``: what an old version of a request, or
#: an old broker's way to rebalance, could break.
ON_THE_OLDEST: Final[Mapping[str, tuple[str, ...]]] = {
    "test_client.py": ("test_every_destination",),
    "test_consumer.py": (
        "test_a_time_before_now_on_an_empty_topic",
        "test_auto_commit_and_resume",
        "test_every_codec",
        "test_pause_resume_and_seek",
        "test_read_committed",
        "test_two_members_share_a_topic",
    ),
    "test_consumer_places.py": ("test_a_policy_says_where_to_begin",),
    "test_consumer_protocol.py": (
        "test_auto_is_classic_where_the_cluster_has_nothing_newer",
    ),
    "test_deferred_revoke.py": (
        "test_finished_records_are_committed_before_they_move",
    ),
    "test_group.py": (
        "test_a_partition_moves_without_loss_or_repetition",
        "test_a_pattern_and_a_new_topic",
        "test_three_members_one_of_them_java",
    ),
    "test_producer.py": (
        "test_records_arrive_as_they_were_sent",
        "test_what_is_too_large_is_divided_or_fails_alone",
        "test_without_acks",
    ),
    "test_sasl.py": ("test_the_right_credentials", "test_the_wrong_credentials"),
}
