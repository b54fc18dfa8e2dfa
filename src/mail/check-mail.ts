/** Less than a person waits. */
const TIMEOUT_MS = 8_000;

/**
 * Connects to the mail server and signs in. Rejects with the server's or the network's error, which
 * does not contain the password.
 */
export async function checkMail(smtpUrl: string): Promise<void> {
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
