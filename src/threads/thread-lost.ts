/** A crawl has no result because its thread ended. */
export class ThreadLost extends Error {
  override readonly name = 'ThreadLost';
  /** Whether the thread was working on this crawl when it ended, or may have been. */
  readonly blamed: boolean;

  constructor(blamed: boolean, reason: string) {
    super(reason);
    this.blamed = blamed;
  }
}
