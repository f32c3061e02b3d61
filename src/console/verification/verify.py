import base64
import hashlib
import hmac
import re
import time


def is_genuine(secret, headers, body, tolerance=300):
    """Tell whether a delivery is genuine: signed with the secret, at most so many seconds old.

    secret: "sec_…"; headers: names in lower case, or any case if the framework ignores it;
    body: the bytes as they came, not parsed yet.
    """
    if not secret:
        raise ValueError("The secret of the webhook is missing.")
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > tolerance:
        return False

    message = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret.encode(), message, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # After a rotation there are several, one for each secret that is still valid.
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(signature.encode(), expected) for signature in given)
