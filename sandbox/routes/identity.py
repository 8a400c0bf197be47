"""The identity provider's routes: ``POST /oauth/token`` and the published key set.

Here: the JSON body of exactly four fields ("Partner surface: bearer token", rule 1), and OAuth
errors (RFC 6749, section 5.2), which the interface does not show. Not here: signing (provider).
"""

from http import HTTPStatus

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from sandbox.admission import JWKS_PATH, TOKEN_PATH
from sandbox.body import LONGEST, TooLongError, is_json, whole
from sandbox.clients import matching
from sandbox.options import Options
from sandbox.provider import Provider
from sandbox.records import Token, TokenRequest

FIELDS = tuple(TokenRequest.model_fields)


class OAuthError(Exception):
    """A refused token request."""

    def __init__(self, status: HTTPStatus, error: str, description: str) -> None:
        super().__init__(description)
        self.answer = JSONResponse(
            {"error": error, "error_description": description},
            status,
            {"Cache-Control": "no-store"},
        )


async def read(request: Request) -> TokenRequest:
    """Read the body of a token request.

    Raises:
        OAuthError: it is no JSON object of exactly the four fields, all texts.
    """
    if not is_json(request):
        raise _bad("the content type must be application/json")
    try:
        return TokenRequest.model_validate_json(await whole(request))
    except TooLongError as error:
        raise _bad(f"the body is longer than {LONGEST} bytes") from error
    except ClientDisconnect as error:
        raise _bad("the body broke off") from error
    except ValidationError as error:
        # The texts of pydantic would repeat what was sent, secrets included.
        raise _bad(f"the body must be a JSON object of {', '.join(FIELDS)}, all texts") from error


def _bad(description: str) -> OAuthError:
    return OAuthError(HTTPStatus.BAD_REQUEST, "invalid_request", description)


def grant(asked: TokenRequest, options: Options, provider: Provider) -> dict[str, str | int]:
    """Give the token response for a request.

    Raises:
        OAuthError: wrong grant type, credentials or audience.
    """
    if asked.grant_type != "client_credentials":
        description = "the grant_type must be client_credentials"
        raise OAuthError(HTTPStatus.BAD_REQUEST, "unsupported_grant_type", description)
    client = matching(options.clients, asked.client_id, asked.client_secret)
    if client is None:
        description = "client_id or client_secret is wrong"
        raise OAuthError(HTTPStatus.UNAUTHORIZED, "invalid_client", description)
    if asked.audience != options.audience:
        # RFC 8707 names this error for a resource that is not known.
        description = "the audience is not known"
        raise OAuthError(HTTPStatus.BAD_REQUEST, "invalid_target", description)
    return provider.issue(client)


def identity_routes(options: Options, provider: Provider) -> APIRouter:
    """Give the identity provider's routes."""
    router = APIRouter(tags=["Identity provider"])

    @router.post(TOKEN_PATH, response_model=Token)
    async def token(request: Request) -> JSONResponse:
        """Exchange client credentials for a bearer token (OAuth 2.0 client credentials)."""
        try:
            granted = grant(await read(request), options, provider)
        except OAuthError as error:
            return error.answer
        return JSONResponse(granted, headers={"Cache-Control": "no-store"})

    @router.get(JWKS_PATH, openapi_extra={"x-assumed": True})
    async def keys() -> JSONResponse:
        """Get the public keys that tokens are signed with (RFC 7517)."""
        return JSONResponse(provider.jwks)

    return router
