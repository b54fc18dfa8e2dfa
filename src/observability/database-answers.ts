import { withDeadline } from '../domain/deadline.ts';

/** How long the database has to answer. */
const PING_MS = 2_000;

/** Whether the database answers within two seconds. Never rejects. */
export function databaseAnswers(ping: () => Promise<void>): Promise<boolean> {
  return withDeadline(ping(), PING_MS, () => new Error('the database does not answer')).then(
    () => true,
    () => false,
  );
}
