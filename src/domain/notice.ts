/** An e-mail to the owner of an account, which waits in the outbox until it is sent. */
export interface QueuedNotice {
  /** Identifies the event, so that one event causes one notice. */
  readonly noticeId: string;
  readonly accountId: string;
  readonly subject: string;
  readonly text: string;
  readonly createdAt: Date;
  /**
   * The earliest time to send it. Notices of one account that are due together may be sent as one
   * mail.
   */
  readonly dueAt: Date;
  /** How often sending it was started. */
  readonly attempts: number;
}
