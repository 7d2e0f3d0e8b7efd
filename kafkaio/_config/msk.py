"""How Java's clients say that they log in to AWS MSK by IAM.

AWS's library for Java has a mechanism of its own, ``AWS_MSK_IAM``, and a handler for
OAUTHBEARER; both take the same options of the login module. Brokers of MSK take the
same signatures as tokens of OAUTHBEARER, and so both become `MskFacts`, of which the
client makes a `kafkaio.security.MskToken`.

No error and no ``repr`` shows a secret. State: none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from kafkaio._config.shown import shown_name
from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError

MECHANISM: Final = "AWS_MSK_IAM"
#: The classes of AWS's library, without their packages, which vendors change.
LOGIN_MODULE: Final = "IAMLoginModule"
LOGIN_HANDLER: Final = "IAMOAuthBearerLoginCallbackHandler"
CLIENT_HANDLERS: Final = frozenset({"IAMClientCallbackHandler", LOGIN_HANDLER})
#: The options of the login module that become a fact.
_OPTIONS: Final[Mapping[str, str]] = {
    "awsProfileName": "profile",
    "awsRoleArn": "role_arn",
    "awsRoleSessionName": "role_session_name",
    "awsRoleExternalId": "role_external_id",
    "awsRoleAccessKeyId": "role_access_key_id",
    "awsRoleSecretAccessKey": "role_secret_access_key",
    "awsRoleSessionToken": "role_session_token",
    "awsStsRegion": "sts_region",
    # kafkaio's own, for brokers whose names do not have the region.
    "awsRegion": "region",
}
#: Those without a meaning here: kafkaio repeats what failed by rules of its own.
_WITHOUT_EFFECT: Final = frozenset({"awsMaxRetries", "awsMaxBackOffTimeMs"})
_DEBUG: Final = "awsDebugCreds"
#: Every option that AWS's login module has here.
OPTIONS: Final = frozenset({*_OPTIONS, *_WITHOUT_EFFECT, _DEBUG})
#: Brokers of MSK are named ``b-1.NAME.ID.c2.kafka.REGION.amazonaws.com``, serverless
#: clusters ``boot-ID.c3.kafka-serverless.REGION.amazonaws.com``.
_HOST: Final = re.compile(
    r"\.kafka(?:-serverless)?\.(?P<region>[a-z]{2,}(?:-[a-z]+)+-[0-9]+)\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MskFacts:
    """Who signs tokens of MSK, and for which region.

    Attributes:
        region: the region of the cluster; empty for that of the environment.
        profile: a profile of AWS's configuration; empty for the default.
        role_arn: a role to assume; empty for none.
        role_session_name: the name of its session; empty for the library's own.
        role_external_id: the external id that the role demands; empty for none.
        role_access_key_id: the key that may assume the role; empty for the default
            credentials.
        role_secret_access_key: the secret of that key.
        role_session_token: the session of that key; empty for none.
        sts_region: the region of the service that gives the role; empty for the
            library's own choice.
        logs_identity: whether to log at DEBUG whose credentials sign.
    """

    region: str = ""
    profile: str = ""
    role_arn: str = ""
    role_session_name: str = ""
    role_external_id: str = field(default="", repr=False)
    role_access_key_id: str = field(default="", repr=False)
    role_secret_access_key: str = field(default="", repr=False)
    role_session_token: str = field(default="", repr=False)
    sts_region: str = ""
    logs_identity: bool = False


def read_msk(options: Mapping[str, str], servers: object) -> MskFacts:
    """Read the options of AWS's login module.

    Args:
        options: the options of the login module.
        servers: the property ``bootstrap.servers``, whose hosts have the region.

    Raises:
        ConfigurationError: an option is unknown, or contradicts another one.
    """
    for name in options:
        if name not in OPTIONS:
            known = ", ".join(sorted(OPTIONS))
            raise _wrong(f"no option {shown_name(name)} of {MECHANISM}: it has {known}")
    given = {_OPTIONS[n]: v for n, v in options.items() if n in _OPTIONS and v}
    debug = options.get(_DEBUG, "false").lower()
    if debug not in {"true", "false"}:
        raise _wrong(f"{_DEBUG} is neither true nor false")
    if "profile" in given and "role_arn" in given:
        raise _wrong("give awsProfileName or awsRoleArn, not both")
    of_role = [n for n, it in _OPTIONS.items() if it.startswith(("role_", "sts_"))]
    if "role_arn" not in given and (odd := [n for n in of_role if options.get(n)]):
        raise _wrong(f"{odd[0]} needs awsRoleArn")
    if ("role_access_key_id" in given) != ("role_secret_access_key" in given):
        raise _wrong("give awsRoleAccessKeyId and awsRoleSecretAccessKey together")
    given.setdefault("region", _region_of(servers))
    return MskFacts(**given, logs_identity=debug == "true")


def _region_of(servers: object) -> str:
    texts = servers if isinstance(servers, list | tuple) else [servers]
    found = _HOST.search(",".join(str(text).lower() for text in texts))
    return found["region"] if found else ""


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"sasl.jaas.config: {what}")
