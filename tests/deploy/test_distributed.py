"""deploy/distributed: what its files say of each other and of settings; none is started here."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.executor import celery_config
from pipelines.settings import PREFIX, Settings

PLACE = Path(__file__).parents[2] / "deploy" / "distributed"
FOLDER = "/etc/partner-sync"
INSTANCE, OURS = ["instance"], ["instance", "partner-sync"]
WORKERS = [*OURS, "connections"]
# Which files of variables each process is given: nobody more than it needs.
GIVEN = {
    "postgresql": ["servers"],
    "redis": ["servers"],
    "daemon": INSTANCE,
    "webserver": INSTANCE,
    "register": OURS,
    "code": OURS,
    "conductor": OURS,
    "fetch": WORKERS,
    "fold": WORKERS,
}
SECRETS = {
    "partner-sync-instance": "instance",
    "partner-sync": "partner-sync",
    "partner-sync-connections": "connections",
}


def read(name: str) -> Any:
    return dg.config_from_files([str(PLACE / name)])


def variables(name: str) -> dict[str, str]:
    lines = (PLACE / f"{name}.env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def pods() -> dict[str, Any]:
    """Return what runs in the pods that are not the chart's, by the last word of the pod's name."""
    return {
        each["metadata"]["name"].rpartition("-")[2]: each["spec"]["template"]["spec"]
        for each in (read("register.yaml"), *read("workers.yaml")["items"])
    }


def queues(commands: list[list[str]]) -> set[str]:
    return {each[each.index("-Q") + 1] for each in commands if "-Q" in each}


@pytest.mark.parametrize("name", ["compose.yaml", "workers.yaml"])
def test_every_queue_has_a_worker(name: str) -> None:
    commands = {
        "compose.yaml": [
            each.get("command", []) for each in read(name).get("services", {}).values()
        ],
        "workers.yaml": [each["containers"][0]["args"] for each in pods().values()],
    }
    launcher = read("dagster.yaml")["run_launcher"]["config"]
    default = celery_config()["config_source"]["task_default_queue"]
    assert queues(commands[name]) == {launcher["default_queue"], "fetch", default}


def test_a_process_runs_the_same_in_containers_and_in_a_cluster() -> None:
    services = read("compose.yaml")["services"]
    for name, pod in pods().items():
        assert pod["containers"][0]["args"] == services[name]["command"]


def test_each_process_of_compose_has_the_variables_it_needs() -> None:
    services = read("compose.yaml")["services"]
    files = {name: [f"{FOLDER}/{each}.env" for each in given] for name, given in GIVEN.items()}
    assert {name: each["env_file"] for name, each in services.items()} == files


def test_each_pod_has_the_variables_it_needs() -> None:
    given = {
        name: [SECRETS[each["secretRef"]["name"]] for each in pod["containers"][0]["envFrom"]]
        for name, pod in pods().items()
    }
    values = read("values.yaml")
    [code] = values["dagster-user-deployments"]["deployments"]
    chart = {
        "webserver": values["dagsterWebserver"],
        "daemon": values["dagsterDaemon"],
        "code": code,
    }
    for name, each in chart.items():
        given[name] = [SECRETS[secret["name"]] for secret in each["envSecrets"]]
    assert given == {name: GIVEN[name] for name in GIVEN if GIVEN[name] != ["servers"]}


def test_whoever_loads_our_code_has_the_config_and_cannot_write_it() -> None:
    services = read("compose.yaml")["services"]
    mounted = f"{FOLDER}/config:{variables('partner-sync')['PARTNER_SYNC_HOME']}/config:ro"
    for name, given in GIVEN.items():
        assert (mounted in services[name].get("volumes", [])) == ("partner-sync" in given)
    [code] = read("values.yaml")["dagster-user-deployments"]["deployments"]
    for pod, container in [(code, code)] + [
        (each, each["containers"][0]) for each in pods().values()
    ]:
        [volume], [mount] = pod["volumes"], container["volumeMounts"]
        assert volume["secret"]["secretName"] == "partner-sync-config"
        assert f"{FOLDER}/config:{mount['mountPath']}:ro" == mounted
        assert mount["readOnly"]


def test_no_pod_is_given_variables_that_are_taken_for_settings() -> None:
    # A service x-y of the namespace is X_Y_PORT and more in every pod that does not decline.
    assert {pod["enableServiceLinks"] for pod in pods().values()} == {False}
    [code] = read("values.yaml")["dagster-user-deployments"]["deployments"]
    assert not code["name"].upper().replace("-", "_").startswith(PREFIX.rstrip("_"))
    [told] = read("workspace.yaml")["load_from"]
    assert code["name"] == told["grpc_server"]["host"]


def test_the_chart_is_of_the_version_of_its_library() -> None:
    locked = (PLACE.parents[1] / "requirements-distributed.lock").read_text()
    told = re.findall(r"--version (\S+)", (PLACE / "README.md").read_text())
    assert told == re.findall(r"^dagster==(\S+)", locked, re.MULTILINE)


def test_there_is_one_dagster_yaml() -> None:
    home = variables("instance")["DAGSTER_HOME"]
    assert (
        f"deploy/distributed/dagster.yaml {home}/dagster.yaml" in (PLACE / "Dockerfile").read_text()
    )
    values = read("values.yaml")
    assert not {"runLauncher", "computeLogManager", "retention", "concurrency"} & set(values)
    assert set(values["dagsterDaemon"]) == {"image", "envSecrets"}


def test_what_has_no_login_is_published_to_this_machine_alone() -> None:
    published = {
        name: each["ports"]
        for name, each in read("compose.yaml")["services"].items()
        if "ports" in each
    }
    assert published == {"webserver": ["127.0.0.1:3000:3000"]}


def test_the_chart_opens_a_port_that_the_images_user_may_open() -> None:
    server = read("values.yaml")["dagsterWebserver"]
    assert server["service"]["port"] == server["readinessProbe"]["httpGet"]["port"] > 1023


def test_the_environment_names_settings_that_there_are() -> None:
    names = {name for each in set(WORKERS) for name in variables(each) if name.startswith(PREFIX)}
    assert {name.removeprefix(PREFIX).lower() for name in names} <= set(Settings.model_fields)


def test_addresses_lead_to_the_servers_of_compose_and_their_databases() -> None:
    services, sql = read("compose.yaml")["services"], (PLACE / "databases.sql").read_text()
    given = variables("instance") | variables("partner-sync")
    servers = [
        *re.findall(r"@(\w+):\d+/", " ".join(given.values())),
        *re.findall(r"host=(\w+)", given["PARTNER_SYNC_WAREHOUSE"]),
    ]
    assert set(servers) == {"postgresql", "redis"} <= set(services)
    named = re.findall(r"//(\w+).*@postgresql:5432/(\w+)", "\n".join(given.values()))
    for role, database in [*named, ("partner_sync", "lake")]:
        assert f"CREATE ROLE {role} LOGIN" in sql
        assert f"CREATE DATABASE {database} OWNER {role}" in sql


def test_the_servers_are_made_with_passwords_that_the_example_names() -> None:
    asked = re.findall(r"\\getenv \w+ (\w+)", (PLACE / "databases.sql").read_text())
    command = " ".join(read("compose.yaml")["services"]["redis"]["command"])
    asked += re.findall(r"\$\$(\w+)", command)
    assert {*asked, "POSTGRES_PASSWORD"} == set(variables("servers"))


@pytest.mark.parametrize("file", sorted(PLACE.iterdir()), ids=lambda file: file.name)
def test_no_file_holds_a_password(file: Path) -> None:
    for password in re.findall(r"://[^/\s]*:([^/\s]*)@", file.read_text()):
        assert password == "replace-me"
    if file.suffix == ".yaml":
        assert "replace-me@" not in file.read_text()
