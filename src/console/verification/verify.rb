require "openssl"

# Tells whether a delivery is genuine: signed with the secret, and at most so many seconds old.
# secret: "sec_…"; headers: request.headers of Rails, or a Hash with names in lower case;
# body: request.raw_post, as it came.
def genuine?(secret, headers, body, tolerance = 300)
  raise ArgumentError, "The secret of the webhook is missing." if secret.to_s.empty?

  id = headers["webhook-id"].to_s
  timestamp = headers["webhook-timestamp"].to_s
  return false unless timestamp.match?(/\A[0-9]{1,12}\z/)
  return false if (Time.now.to_f - timestamp.to_i).abs > tolerance

  message = "#{id}.#{timestamp}.".b + body.b
  expected = "v1," + [OpenSSL::HMAC.digest("SHA256", secret, message)].pack("m0")
  # After a rotation there are several, one for each secret that is still valid.
  signatures = headers["webhook-signature"].to_s.split(" ")
  signatures.any? { |signature| OpenSSL.secure_compare(signature, expected) }
end
