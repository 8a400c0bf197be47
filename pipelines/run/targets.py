"""Whom alerts are told: the log always, a webhook and mail where they are set.

Here: one message to one target; what fails is said without the secret that was needed. Not here:
what is told (message), and to whom what was told before (alerting).
"""

import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from functools import partial

import httpx

from pipelines.api.client import trusted
from pipelines.errors import ConfigurationError, NotTold
from pipelines.run.message import Message
from pipelines.settings import LOOPBACK, Mail, Settings, Webhook

PATIENCE = 10.0  # seconds for each step of a conversation
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """Somebody who is told; `send` raises NotTold or ConfigurationError where that fails."""

    name: str
    send: Callable[[Message], None]


def targets(settings: Settings, tell: Tell) -> tuple[Target, ...]:
    """Return all who are told: `tell` is the log, and hears what else is to be said."""
    found = [Target("log", partial(_log, tell))]
    if settings.webhook:
        found.append(Target("webhook", partial(_post, settings.webhook)))
    if settings.mail:
        found.append(Target("mail", partial(_mail, settings.mail, tell)))
    return tuple(found)


def _log(tell: Tell, message: Message) -> None:
    for line in message.lines:
        tell(line)


def _post(webhook: Webhook, message: Message) -> None:
    timeout = httpx.Timeout(PATIENCE).as_dict()
    request = httpx.Request(
        "POST", _url(webhook), json=message.body, extensions={"timeout": timeout}
    )
    trust = trusted(webhook.ca_file)
    try:
        # No client: it would log the URL, which is the secret.
        with httpx.HTTPTransport(verify=trust, trust_env=False) as network:
            answer = network.handle_request(request)
            answer.close()
    except httpx.HTTPError as error:
        raise NotTold(f"no answer ({type(error).__name__})") from None
    if not answer.is_success:
        raise NotTold(f"it answered {answer.status_code}")


def _url(webhook: Webhook) -> httpx.URL:
    """Return the address; what is wrong with it is said without it."""
    text = webhook.secret.read()
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    here = url.scheme == "http" and url.host in LOOPBACK
    if not url.host or not (url.scheme == "https" or here):
        named = webhook.url or webhook.url_file
        raise ConfigurationError(
            f"webhook: what {named} holds is no https address (http is for this machine only)"
        )
    return url


def _mail(mail: Mail, tell: Tell, message: Message) -> None:
    letter = EmailMessage()
    letter["Subject"] = message.subject
    letter["From"], letter["To"] = mail.sender, ", ".join(mail.to)
    letter["Date"] = format_datetime(message.at)
    letter["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.text)
    password = mail.secret.read() if mail.user else ""
    try:
        with _server(mail) as server:
            if mail.security == "starttls":
                server.starttls(context=trusted(mail.ca_file))
            if mail.user:
                server.login(mail.user, password)
            refused = server.send_message(letter)
    except (OSError, ValueError) as error:  # every failure of smtplib is an OSError
        raise NotTold(_mail_words(error, mail)) from None
    for recipient in refused:
        tell(f"{mail.host} takes no mail for {recipient}: the others were told")


def _server(mail: Mail) -> smtplib.SMTP:
    if mail.security == "tls":
        trust = trusted(mail.ca_file)
        return smtplib.SMTP_SSL(mail.host, mail.door, timeout=PATIENCE, context=trust)
    return smtplib.SMTP(mail.host, mail.door, timeout=PATIENCE)


def _mail_words(error: Exception, mail: Mail) -> str:
    """Say why in words of ours: a server may quote what it was sent."""
    where = f"{mail.host}:{mail.door}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{where} answered {error.smtp_code} ({type(error).__name__})"
    if isinstance(error, ssl.SSLError):
        return f"certificate of {where} not trusted, or no TLS: {error.reason}; set ca_file"
    why = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return f"{where}: {why or type(error).__name__}"
