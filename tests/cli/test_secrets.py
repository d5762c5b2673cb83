"""No command shows a secret: of a store that has them all, of its broker, of who reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from rmqtool.cli.commands import COMMANDS
from rmqtool.secrets import hide, is_secret
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable

HUSH = "hush-Zx81Qe"
"""part of each secret"""
NAMES = (
    "password", "accessKey", "secretKey", "SecretKey", "securityToken", "tls.server.keyPassword",
    "tls.client.keyPassword", "aws_secret_access_key", "AWS_ACCESS_KEY_ID",
    "innerClientAuthenticationCredentials", "initAuthenticationUser", "session-token", "privateKey",
    "clientSecret",
)  # fmt: skip
IN_TEXT = (
    "{name}={value}", "{name} = '{value}'", '"{name}": "{value} {value}"', "{name}: {value}",
    "{{{name}={value}, a=b}}", '{name}={{"username":"anna","password":"{value}"}}', "{name}=>{value}",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    for form in IN_TEXT:
        shown = hide(f"before {form.format(name=name, value=HUSH)} behind")
        assert HUSH not in shown
        assert shown.startswith("before ")
        assert shown.endswith(" behind")


def test_what_is_no_secret_stays() -> None:
    for text in (
        "topic=T, keys=k1", "no such secret key", "TopicPasswordReset@g:1", "//127.0.0.1:9876/a@b", "key: 1",
        "rmqtool: /etc/passwd: Permission denied", "'/srv/.aws/credentials': No such file or directory",
        "cannot open ./my-passwd: Is a directory", "~/.password: exists", "../x/client.secret: not a store",
    ):  # fmt: skip
        assert hide(text) == text


def test_what_only_looks_like_a_path_is_hidden() -> None:
    for text in (
        f"user/password: {HUSH}", f"/login?password: {HUSH}", f"/login password: {HUSH}",
        f"/etc/passwd={HUSH}", f"/x/password:{HUSH}", f"{'/' * 9000} password: {HUSH}",
        f'/a "password": {HUSH}',
    ):  # fmt: skip
        assert HUSH not in hide(text), text


def secrets(form: str) -> str:
    return "\n".join(form.format(name=name, value=f"{HUSH}-{name}") for name in NAMES)


def keep(root: Path) -> None:
    """Every file in which a broker, or who copied it, has secrets; also broken, and under names of tables."""
    table = {name: f"{HUSH}-{name}" for name in NAMES} | {"x": [{"secretKey": 3, "password": HUSH}]}
    text = json.dumps(table)
    config = root / "config"
    config.mkdir(exist_ok=True)
    for name in ("users.json", "acls.json", "subscriptionGroup.json.bak", "consumerFilter.json"):
        (config / name).write_text(text)
    (config / "topicQueueMapping.json").write_text(text[:-1] + ",,}")
    (config / "messageRequestMode.json").write_text(f'{{"password":{HUSH}}}')
    (config / "consumerOrderInfo.json").write_text(f'{{"table":{{}},"secretKey":"{HUSH}\x01')
    (config / "plain_acl.yml").write_text(f"accounts:\n{secrets('- {name}: {value}')}\n")
    for name in ("plain_acl.yml", "broker.conf", "tls.properties", "server.key", "server.pem", "tools.yml"):
        (root / name).write_text(f"-----BEGIN PRIVATE KEY-----\n{HUSH}\n{secrets('{name}={value}')}\n")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = fixtures.open_golden("v533-tx", tmp_path_factory.mktemp("secrets")).path
    keep(root)
    return root


@pytest.fixture
def conf(tmp_path: Path, store: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text(f"{secrets('{name}={value}')}\nstorePathRootDir={store}\n")
    return path


LINES = [
    *(f"2026-11-22 10:00:00 WARN main - {form.format(name='secretKey', value=HUSH)}" for form in IN_TEXT),
    f"2026-11-22 10:00:00 ERROR main - accessKey={HUSH} //anna:{HUSH}@127.0.0.1:9876/ a_password={HUSH}",
]
ASKED: dict[str, list[list[str]]] = {
    "info": [["STORE"], ["STORE", "--what-to-copy", "--manifest", "NEW/manifest"]],
    "dump": [["STORE"], ["STORE/config"], ["STORE/config/users.json"], ["STORE/server.key"],
             ["STORE/config/topicQueueMapping.json"], ["STORE/config/consumerOrderInfo.json"],
             ["STORE/plain_acl.yml"], ["STORE/config/plain_acl.yml", "--as", "config"]],
    "verify": [["STORE", "--deep"], ["STORE/config"]],
    "doctor": [["STORE", "--full"], ["STORE", "--what-if", "delete-checkpoint"]],
    "show": [["STORE", "0"]],
    "query-key": [["STORE", "-", "k"]],
    "query-id": [["STORE", "7F000001000078BF0000000000000000"]],
    "query-offset": [["STORE", "TopicTest", "0", "0"]],
    "query-time": [["STORE", "TopicTest", "0", "now"]],
    "tail": [["STORE"]],
    "stats": [["STORE", "--by", "group"], ["STORE", "--retention"]],
    "map": [["STORE"]],
    "report": [["STORE", "--output", "NEW/a.html", "--plan", "always"]],
    "export": [["STORE", "--to", "NEW/a.ndjson"]],
    "sql": [["STORE", "select * from topics"], ["STORE", "select * from consumer_offsets"],
            ["STORE", "select getenv('AWS_SECRET_ACCESS_KEY')"], ["STORE", "from duckdb_secrets()"],
            ["STORE", f"select secretKey='{HUSH}' from nothing"]],
    "salvage": [["STORE", "--output", "NEW/salvaged"]],
    "recover": [["STORE"], ["STORE", "--policy", "broker"], ["STORE", "--save-plan", "NEW/plan.json"],
                ["STORE", "--output", "NEW/made", "--apply"]],
    "explain": [LINES, [*LINES, "--store", "STORE"]],
    "rebuild": [["STORE"], ["STORE", "--save-plan", "NEW/plan.json"]],
    "undo": [["STORE/config/users.json"], ["STORE/plain_acl.yml"]],
    "checkpoint show": [["STORE"]],
    "checkpoint set": [["STORE"]],
    "delayed": [["STORE"]],
    "half": [["STORE"]],
    "retry": [["STORE"], ["STORE", "--to", "NEW/again.replay"]],
    "dlq": [["STORE"], ["STORE", "--to", "NEW/dead.replay", "--to-origin"]],
    "trace": [["STORE", "k"]],
    "assign": [["STORE", "TopicTest", "--clients", "a,b"]],
    "diff": [["STORE", "STORE"]],
    "offsets audit": [["STORE"]],
    "offsets clamp": [["STORE"], ["STORE", "--save-plan", "NEW/plan.json"]],
    "offsets merge": [["STORE", "STORE"]],
    "offsets diff": [["STORE", "STORE"]],
    "config check": [["STORE"]],
    "config salvage": [["STORE"], ["STORE", "--save-plan", "NEW/plan.json"]],
    "schema": [[], ["dump"], ["no-such-schema"]],
    "store init": [["NEW/store"], ["STORE"]],
    "store put": [["STORE", "TopicTest", "--body", "x"]],
    "store get": [["STORE", "TopicTest", "0"]],
    "store topic": [["STORE", "TopicTest"], ["STORE", "TopicTest", "--perm", "4"]],
    "store group": [["STORE", "G"], ["STORE", "G", "--retry-max", "1"]],
    "store groups": [["STORE"]],
    "store commit": [["STORE", "none"]],
    "store rollback": [["STORE", "none"]],
    "store expire": [["STORE"]],
    "store replicate": [["NEW/absent", "--listen", "0"]],
    "store status": [["STORE"]],
    "store bench": [["STORE", "--work", "put", "--engine", "sqlite", "--count", "1", "--body", "1"]],
    "store load": [["STORE", "NEW/absent.replay"]],
}  # fmt: skip
FORMS = ([], ["--json"], ["--format", "ndjson"], ["--format", "csv"], ["--debug"])


def refuse_secrets(words: list[object], new: Path) -> None:
    """Runs a command; also the plans and exports that it writes have none (a copy of a store has all)."""
    done = rmq(*words)
    assert HUSH not in done.stdout + done.stderr, words
    assert done.exit_code != 4, done.stderr
    for path in (*new.glob("*.json"), *new.glob("*.ndjson")):
        assert HUSH not in path.read_text(), (words, path)
        path.unlink()


@pytest.mark.share
@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith("pipeline")])
def test_no_command_shows_a_secret(
    store: Path, conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "RMQ_PASSWORD"):
        monkeypatch.setenv(name, f"{HUSH}-{name}")
    if command.startswith("store "):  # others are asked about the same store
        store = Path(shutil.copytree(store, tmp_path / "own"))
    for number, asked in enumerate(ASKED[command]):
        for form in FORMS:
            new = tmp_path / f"{number}{'-'.join(form)}"
            new.mkdir()
            words = [one.replace("STORE", str(store)).replace("NEW", str(new)) for one in asked]
            refuse_secrets([*command.split(), *words, *form], new)
            if command not in {"undo", "salvage", "explain"} and not form:
                refuse_secrets([*command.split(), *words, "--store-config", conf, "--debug"], new)


def test_errors_show_none(store: Path, conf: Path, tmp_path: Path) -> None:
    """What is wrong with settings and addresses is reported without them."""
    conf.write_text(f"secretKey={HUSH}\nmaxIndexNum=x secretKey={HUSH}\n")
    for words in (
        ["verify", store, "--store-config", conf],
        ["verify", f"secretKey={HUSH}"],
        ["pipeline", "verify", f"s3://AKIA:{HUSH}@b/store"],
        ["pipeline", "verify", store, "--conf", f"fs.s3a.secret.key={HUSH}"],
    ):
        for debug in ([], ["--debug"]):
            refuse_secrets([*words, *debug], tmp_path)


@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv"])
def test_values_of_secrets_are_not_listed(fresh_golden: Callable[[str], Any], form: str) -> None:
    config = fresh_golden("v533-tx").path / "config"
    config.mkdir(exist_ok=True)
    table = {"users": [{"username": "anna", "password": HUSH}], "accessKey": HUSH, "x": {"SecretKey": 3}}
    (config / "users.json").write_text(json.dumps(table))
    result = rmq("dump", config / "users.json", "--format", form)
    assert result.exit_code == 0
    assert "anna" in result.stdout
    assert "***" in result.stdout
    assert HUSH not in result.stdout + result.stderr
