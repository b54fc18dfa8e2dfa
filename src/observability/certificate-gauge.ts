import { Gauge, type Registry } from 'prom-client';

/** The certificate of the service. */
export interface MeasuredCertificate {
  readonly endsAt: Date;
}

/** Makes the gauge of when the certificate ends. */
export function createCertificateGauge(registry: Registry, certificate: MeasuredCertificate): void {
  new Gauge({
    name: 'queued_crawler_tls_certificate_expiry_timestamp_seconds',
    help: 'When the certificate that new connections get ends.',
    registers: [registry],
    collect() {
      this.set(certificate.endsAt.getTime() / 1_000);
    },
  });
}
