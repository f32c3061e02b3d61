<?php

/**
 * Tells whether a delivery is genuine: signed with the secret, and at most so many seconds old.
 * $secret: "sec_…"; $headers: array_change_key_case(getallheaders());
 * $body: file_get_contents('php://input'), as it came.
 */
function is_genuine(string $secret, array $headers, string $body, int $tolerance = 300): bool
{
    if ($secret === '') {
        throw new InvalidArgumentException('The secret of the webhook is missing.');
    }
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if (!preg_match('/^[0-9]{1,12}$/D', $timestamp)) {
        return false;
    }
    if (abs(time() - (int) $timestamp) > $tolerance) {
        return false;
    }

    $digest = hash_hmac('sha256', "$id.$timestamp.$body", $secret, true);
    $expected = 'v1,' . base64_encode($digest);
    // After a rotation there are several, one for each secret that is still valid.
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}
