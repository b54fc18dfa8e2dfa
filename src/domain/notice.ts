/** A message to the owner of an account that waits in the outbox until it is sent. */
export interface QueuedNotice {
  /** Names the event it tells of, so that the event is told once. */
  readonly noticeId: string;
  readonly accountId: string;
  readonly subject: string;
  readonly text: string;
  readonly createdAt: Date;
  /** Not sent before; notices of one account that are due together may go out as one mail. */
  readonly dueAt: Date;
  /** How often it was taken to be sent. */
  readonly attempts: number;
}
