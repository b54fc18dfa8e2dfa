import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startReceiver } from '../support/receiver.ts';
import { createTestClock } from '../support/test-clock.ts';

const SECOND = 1_000;
const WINDOW_MS = 5 * 60 * SECOND;

test('many crawlers that are paused are told of in one mail in five minutes, each once', async () => {
  const clock = createTestClock();
  await using mail = await startMailServer();
  await using receiver = await startReceiver();
  receiver.answerProbes({ status: 500 });
  await using app = await startApp({
    clock,
    env: {
      PROBE_INTERVAL_SECONDS: '60',
      SMTP_URL: mail.url,
      ACCOUNT_EMAIL: 'owner@example.com',
    },
  });
  const names = Array.from({ length: 15 }, (_, n) => `hook-${String(n).padStart(2, '0')}`);
  // A URL each, so that each has a probe of its own.
  for (const name of names) {
    await createCrawler(app, name, { callback_url: `${receiver.url}/${name}` });
  }
  const startedAt = clock.now().getTime();
  await eventually(async () => {
    clock.advance(2 * SECOND);
    const { json } = await app.rest('GET', `/crawler/${NORMAL}`);
    const states = json.crawlers.map((crawler: { status: string }) => crawler.status);
    expect(new Set(states)).toEqual(new Set(['paused']));
  });
  const subjects = (): string[] => {
    const all = mail.mails.join('\n');
    return names.filter((name) => all.includes(`Crawler ${name} is paused`));
  };
  await eventually(() => {
    clock.advance(10 * SECOND);
    expect(subjects()).toEqual(names);
  });
  const windows = Math.floor((clock.now().getTime() - startedAt) / WINDOW_MS);
  expect(mail.mails.length).toBeLessThanOrEqual(windows + 1);
  const text = mail.mails.join('\n');
  for (const name of names) {
    // In the subject of a mail of its own, or in one list.
    const told = text.match(new RegExp(`^(- |Subject: )Crawler ${name} is paused`, 'gm'));
    expect([name, told?.length]).toEqual([name, 1]);
  }
});
