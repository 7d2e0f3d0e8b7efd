"""The operations of `kafkaio.Admin` on configs.

A broker answers for its own configs and loggers, and any broker for everything else.
Brokers before 2.3 can only replace all configs of a resource. Their present configs are
read, merged with the changes and written; a change made meanwhile is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Broker, Destination
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio.admin._asking import ask, final_at, outcome
from kafkaio.admin._checks import items_of, member_of
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    ConfigChange,
    ConfigChangeType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceName,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode

_Entries = dict[str, ConfigEntry]

_NUMBERS: Final = {
    ConfigResourceType.TOPIC: 2,
    ConfigResourceType.BROKER: 4,
    ConfigResourceType.BROKER_LOGGER: 8,
    ConfigResourceType.CLIENT_METRICS: 16,
    ConfigResourceType.GROUP: 32,
}
_TYPES: Final = {number: kind for kind, number in _NUMBERS.items()}
_CHANGES: Final = {
    ConfigChangeType.SET: 0,
    ConfigChangeType.DELETE: 1,
    ConfigChangeType.APPEND: 2,
    ConfigChangeType.SUBTRACT: 3,
}
#: The changes that do not depend on the present value.
_REPLACING: Final = frozenset({ConfigChangeType.SET, ConfigChangeType.DELETE})
#: The resources whose configs only the broker that they are named after knows.
_OF_ONE_BROKER: Final = frozenset(
    {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}
)
#: The source of the configs that AlterConfigs has to write again, because it deletes
#: those that it does not get. The only types that brokers before 2.3 can alter.
_OWN: Final = {
    ConfigResourceType.TOPIC: ConfigSource.TOPIC,
    ConfigResourceType.BROKER: ConfigSource.BROKER,
}
#: The first version of DescribeConfigs with documentation (Kafka 2.6).
_WITH_DOCUMENTATION: Final = 3
#: The first version of ListConfigResources with all types; version 0 is the list of
#: subscriptions of KIP-714, which KIP-1142 has extended.
_ALL_TYPES: Final = 1
#: That a topic does not exist is final here.
_REACT: Final = final_at(
    apis.INCREMENTAL_ALTER_CONFIGS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
)


class Configs(Subject):
    """The operations on configs."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Describe the configs of topics, brokers, loggers, groups and others.

        Args:
            resources: what the configs belong to.
            include_synonyms: whether to ask where each value could come from.
            include_documentation: whether to ask for Kafka's documentation (Kafka 2.6).
            timeout: seconds.

        Returns:
            The configs by name, by resource in the order of ``resources``.

        Raises:
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the client may not describe the configs.
            BrokerError: the broker refuses for another reason.
            RequestTimeout: no answer arrived in time, or the broker does not exist.
            AdminErrors: several resources failed.
            ArgumentValueError: the name of a broker is not a node id.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_resources(resources)
        results = await self._config_entries(
            wanted,
            deadline,
            synonyms=include_synonyms,
            documentation=include_documentation,
        )
        return outcome("describe configs", wanted, results)

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, None]:
        """Change single configs of resources; all others keep their values (KIP-339).

        The changes of one resource take effect together or not at all. Brokers before
        2.3 can only replace all configs of a topic or broker: there they are read,
        changed and written, so that a change that another client makes meanwhile is
        lost. If the call is cancelled, the changes may still take effect.

        Args:
            changes: the changes of each resource.
            validate_only: whether the brokers only check the changes.
            timeout: seconds.

        Returns:
            None by resource, in the order of ``changes``, also for one without changes.

        Raises:
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the client may not alter the configs.
            BrokerError: INVALID_CONFIG, INVALID_REQUEST or another refusal.
            UnsupportedVersion: the broker does not know such a resource.
            RequestTimeout: no answer arrived in time; the changes may take effect.
            AdminErrors: several resources failed.
            ArgumentValueError: a config is changed twice, or lacks a value.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_changes(changes)
        operation: Operation[
            ConfigResource, None, messages.IncrementalAlterConfigsResponse
        ] = Operation(
            what="alter the configs of",
            request=messages.IncrementalAlterConfigsRequest,
            destination=_home,
            build=lambda items, _: messages.IncrementalAlterConfigsRequest(
                resources=[_alteration(item, wanted[item]) for item in items],
                validate_only=validate_only,
            ),
            read=lambda response, _: (
                Answer(
                    _resource(it.resource_type, it.resource_name),
                    None,
                    it.error_code,
                    it.error_message,
                )
                for it in response.responses
            ),
            react=_REACT,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, "2.3")
        # The answer of each broker decides: brokers of several releases may be asked.
        old = {
            resource: wanted[resource]
            for resource, error in results.failed.items()
            if isinstance(error, UnsupportedVersion) and resource.type in _OWN
        }
        if old:
            for resource in old:
                del results.failed[resource]
            merged = await self._replace_configs(
                old, deadline, validate_only=validate_only
            )
            results.add(merged)
        return outcome("alter configs", wanted, results)

    async def list_config_resources(
        self,
        types: Iterable[ConfigResourceType | ConfigResourceName] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[ConfigResource]:
        """List what has configs (KIP-1142, Kafka 4.1).

        Brokers before 4.1 list only the subscriptions of client metrics (Kafka 3.7).

        Args:
            types: what to list; everything by default.
            timeout: seconds.

        Returns:
            The resources, sorted by type and name.

        Raises:
            AuthorizationError: the client may not describe configs of the cluster.
            UnsupportedVersion: the broker cannot list these types.
            RequestTimeout: no broker answered in time.
            ArgumentValueError: a type is unknown.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        kinds = (
            None
            if types is None
            else [
                member_of("types", ConfigResourceType, each)
                for each in items_of("types", types)
            ]
        )
        if kinds == []:
            return []
        operation: Operation[
            str, list[ConfigResource], messages.ListConfigResourcesResponse
        ] = Operation(
            what="list",
            request=messages.ListConfigResourcesRequest,
            destination=lambda _: ANY,
            build=lambda _, terms: _listing(kinds, terms.version),
            read=lambda response, items: [
                Answer(
                    items[0],
                    [
                        _resource(it.resource_type, it.resource_name)
                        for it in response.config_resources
                    ],
                    response.error_code,
                )
            ],
        )
        since = "3.7" if _are_metrics(kinds) else "4.1"
        what = "config resources"
        results = await ask(self._cluster, operation, [what], deadline, since)
        return sorted(results.or_raise()[what], key=lambda it: (it.type, it.name))

    async def _config_entries(
        self,
        resources: Collection[ConfigResource],
        deadline: float,
        *,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> Results[ConfigResource, _Entries]:
        """Return the configs of resources by name; see `describe_configs`."""

        def build(
            items: Sequence[ConfigResource], terms: Terms
        ) -> messages.DescribeConfigsRequest:
            return messages.DescribeConfigsRequest(
                resources=[
                    messages.DescribeConfigsResource(
                        resource_type=_NUMBERS[item.type],
                        resource_name=item.name,
                        configuration_keys=None,
                    )
                    for item in items
                ],
                include_synonyms=synonyms,
                include_documentation=documentation
                and terms.version >= _WITH_DOCUMENTATION,
            )

        operation: Operation[
            ConfigResource, _Entries, messages.DescribeConfigsResponse
        ] = Operation(
            what="describe the configs of",
            request=messages.DescribeConfigsRequest,
            destination=_home,
            build=build,
            read=_read_description,
            react=_REACT,
            is_exact=True,
        )
        return await ask(self._cluster, operation, resources, deadline, "2.1")

    async def _replace_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        deadline: float,
        *,
        validate_only: bool,
    ) -> Results[ConfigResource, None]:
        """Read the configs, merge the changes, and write all of them."""
        results, configs = await self._merged_configs(changes, deadline)

        def build(
            items: Sequence[ConfigResource], terms: Terms
        ) -> messages.AlterConfigsRequest:
            del terms
            return messages.AlterConfigsRequest(
                resources=[
                    messages.AlterConfigsRequestAlterConfigsResource(
                        resource_type=_NUMBERS[item.type],
                        resource_name=item.name,
                        configs=[
                            messages.AlterConfigsRequestAlterableConfig(
                                name=name, value=value
                            )
                            for name, value in configs[item].items()
                        ],
                    )
                    for item in items
                ],
                validate_only=validate_only,
            )

        operation: Operation[ConfigResource, None, messages.AlterConfigsResponse] = (
            Operation(
                what="alter the configs of",
                request=messages.AlterConfigsRequest,
                destination=_home,
                build=build,
                read=lambda response, _: (
                    Answer(
                        _resource(it.resource_type, it.resource_name),
                        None,
                        it.error_code,
                        it.error_message,
                    )
                    for it in response.responses
                ),
                react=_REACT,
                is_exact=True,
            )
        )
        results.add(await ask(self._cluster, operation, configs, deadline, "2.1"))
        return results

    async def _merged_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        deadline: float,
    ) -> tuple[
        Results[ConfigResource, None], dict[ConfigResource, dict[str, str | None]]
    ]:
        """Read the configs of resources, and return what is to be written of each.

        A resource without changes is found, and one that cannot be read has failed.
        """
        present = await self._config_entries(changes, deadline)
        results = Results[ConfigResource, None](failed=present.failed)
        configs: dict[ConfigResource, dict[str, str | None]] = {}
        for resource, entries in present.found.items():
            if not changes[resource]:
                results.found[resource] = None
                continue
            try:
                configs[resource] = _merged(resource, entries, changes[resource])
            except BrokerError as error:
                results.failed[resource] = error
        return results, configs


def _alteration(
    resource: ConfigResource, changes: Sequence[ConfigChange]
) -> messages.IncrementalAlterConfigsRequestAlterConfigsResource:
    return messages.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_NUMBERS[resource.type],
        resource_name=resource.name,
        configs=[
            messages.IncrementalAlterConfigsRequestAlterableConfig(
                name=change.name,
                config_operation=_CHANGES[change.type],
                value=change.value,
            )
            for change in changes
        ],
    )


def _listing(
    types: Collection[ConfigResourceType] | None, version: int
) -> messages.ListConfigResourcesRequest:
    if version < _ALL_TYPES and not _are_metrics(types):
        raise UnsupportedVersion(
            "the broker lists client metrics alone: types=[CLIENT_METRICS]"
        )
    numbers = sorted(_NUMBERS[each] for each in types or ())
    return messages.ListConfigResourcesRequest(
        resource_types=numbers if version >= _ALL_TYPES else []
    )


def _are_metrics(types: Collection[ConfigResourceType] | None) -> bool:
    return types is not None and set(types) == {ConfigResourceType.CLIENT_METRICS}


def _home(resource: ConfigResource) -> Destination:
    # The resource with the empty name has the defaults of all brokers, which any broker
    # answers.
    if resource.type in _OF_ONE_BROKER and resource.name:
        return Broker(int(resource.name))
    return ANY


def _resource(number: int, name: str) -> ConfigResource:
    kind = _TYPES.get(number)
    if kind is None:
        raise ProtocolError(f"the answer has a config resource of type {number}")
    return ConfigResource(kind, name)


def _read_description(
    response: messages.DescribeConfigsResponse, _: object
) -> Iterator[Answer[ConfigResource, _Entries]]:
    for it in response.results:
        entries = {config.name: _entry(config) for config in it.configs}
        resource = _resource(it.resource_type, it.resource_name)
        yield Answer(resource, entries, it.error_code, it.error_message)


def _entry(config: messages.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=ConfigSource.of(config.config_source),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        type=ConfigType.of(config.config_type),
        documentation=config.documentation or None,
        synonyms=tuple(
            ConfigSynonym(it.name, it.value, ConfigSource.of(it.source))
            for it in config.synonyms
        ),
    )


def _merged(
    resource: ConfigResource, entries: _Entries, changes: Sequence[ConfigChange]
) -> dict[str, str | None]:
    """Return the configs that are set for a resource, with the changes made.

    Raises:
        BrokerError: a sensitive value would be lost, because it cannot be read.
    """
    # The answer has the values in force, wherever they come from. To write a default
    # again would pin it for the resource.
    own = _OWN[resource.type]
    if resource.type is ConfigResourceType.BROKER and not resource.name:
        own = ConfigSource.BROKER_DEFAULT  # what all brokers have in common
    merged: dict[str, str | None] = {}
    replaced = {it.name for it in changes if it.type in _REPLACING}
    for entry in entries.values():
        if entry.source is not own or entry.name in replaced:
            continue
        if entry.is_sensitive:
            # The broker sends None in place of its value; to write that would reset it.
            raise broker_error(
                ErrorCode.INVALID_CONFIG,
                f"alter the configs of {resource}: a broker before 2.3 replaces all "
                f"configs, and the value of {entry.name} cannot be read",
            )
        merged[entry.name] = entry.value
    for change in changes:
        if change.type is ConfigChangeType.SET:
            merged[change.name] = change.value
        elif change.type is not ConfigChangeType.DELETE:
            present = merged.get(change.name)
            if present is None and change.name in entries:
                present = entries[change.name].value
            merged[change.name] = _list_changed(present, change)
    return merged


def _list_changed(present: str | None, change: ConfigChange) -> str:
    values = [each.strip() for each in (present or "").split(",") if each.strip()]
    given = [each.strip() for each in (change.value or "").split(",") if each.strip()]
    if change.type is ConfigChangeType.APPEND:
        values += [each for each in given if each not in values]
    else:
        values = [each for each in values if each not in given]
    return ",".join(values)


# ---- arguments -----------------------------------------------------------------------


def check_resources(resources: Iterable[ConfigResource]) -> list[ConfigResource]:
    """Check resources, each of which counts once.

    Raises:
        ArgumentTypeError: one is not a `ConfigResource`.
        ArgumentValueError: the name of a broker is not a node id.
    """
    found: list[object] = items_of("resources", resources)
    for each in found:
        _check_resource(each)
    return list(dict.fromkeys(items_of("resources", found)))


def _check_resource(resource: object) -> None:
    if not isinstance(resource, ConfigResource):
        raise ArgumentTypeError(
            f"resources must be ConfigResource, not {type_name(resource)}"
        )
    if resource.type not in _NUMBERS:
        raise ArgumentValueError(f"{resource.type} is not a type of config resource")
    if (
        resource.type in _OF_ONE_BROKER
        and resource.name
        and not resource.name.isdecimal()
    ):
        raise ArgumentValueError(
            f"the name of a broker is its node id, or empty for all brokers: "
            f"{resource.name!r}"
        )


def check_changes(
    changes: Mapping[ConfigResource, Iterable[ConfigChange]],
) -> dict[ConfigResource, list[ConfigChange]]:
    """Check changes of configs.

    Raises:
        ArgumentTypeError: it is not a mapping of `ConfigResource` to `ConfigChange`.
        ArgumentValueError: a config is changed twice, a value is missing, or one is
            given that is not used.
    """
    if not isinstance(changes, Mapping):
        raise ArgumentTypeError(
            "changes must be a mapping from ConfigResource to changes, not "
            f"{type_name(changes)}"
        )
    checked: dict[ConfigResource, list[ConfigChange]] = {}
    for resource, given in changes.items():
        _check_resource(resource)
        checked[resource] = []
        names: set[str] = set()
        for change in items_of("changes", given):
            if not isinstance(change, ConfigChange):
                raise ArgumentTypeError(
                    f"changes must be ConfigChange, not {type_name(change)}"
                )
            if change.name in names:
                raise ArgumentValueError(f"{resource}: {change.name} occurs twice")
            if (change.value is None) != (change.type is ConfigChangeType.DELETE):
                raise ArgumentValueError(
                    f"{resource}: {change.name}: a value belongs to every change but "
                    "delete"
                )
            names.add(change.name)
            checked[resource].append(change)
    return checked
