import { describe, expect, test } from 'vitest';
import { exposureWarning } from '../../../src/config/exposure.ts';
import { startApp } from '../../support/app.ts';

describe('a service that others reach without TLS', () => {
  test.each(['0.0.0.0', '::', '10.1.2.3', 'crawler.example.com', '1.127.0.0'])(
    'on %s is warned about',
    (host) => {
      const warning = exposureWarning({ host, tlsCertFile: '' });
      expect(warning).toContain(host);
      expect(warning).toContain('TLS_CERT');
      expect(warning).toContain('proxy');
      expect(exposureWarning({ host, tlsCertFile: 'cert.pem' })).toBeUndefined();
    },
  );

  test.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost', '::ffff:127.0.0.1'])(
    'on %s is not: nobody else reaches it',
    (host) => expect(exposureWarning({ host, tlsCertFile: '' })).toBeUndefined(),
  );

  test('says so once when it starts', async () => {
    await using open = await startApp({ env: { HOST: '0.0.0.0' } });
    expect(open.log.filter((line) => line.includes('without TLS'))).toHaveLength(1);
    await using closed = await startApp();
    expect(closed.log.filter((line) => line.includes('without TLS'))).toEqual([]);
  });
});
