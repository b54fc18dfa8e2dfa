/** How a crawler's results reach its owner. */
export type DeliveryMode = 'webhook' | 'storage';

/** What a delivery mode implies; each part of the service asks for the trait it depends on. */
export interface DeliveryTraits {
  /** In messages to clients, with a capital. */
  readonly title: string;
  /**
   * Results are POSTed to the crawler's callback URL, which its creation has to give. Such a
   * crawler has signing secrets, its pushes may bring headers for the callback, and the URL is
   * probed.
   */
  readonly postsToCallback: boolean;
  /**
   * The result of an ended job becomes a delivery, which the dispatcher attempts until it is
   * acknowledged or given up. Otherwise the result enters storage, where the client reads it.
   */
  readonly delivers: boolean;
  /**
   * What receives a crawler's deliveries. Those to one target share a pace, whichever crawler they
   * are of.
   */
  target(crawler: {
    readonly crawlerId: string;
    readonly callbackUrl?: string | undefined;
  }): string;
}

/** The traits of every mode; a new mode does not compile until it has them. */
export const deliveryModes: Readonly<Record<DeliveryMode, DeliveryTraits>> = {
  webhook: {
    title: 'Webhook',
    postsToCallback: true,
    delivers: true,
    target: ({ crawlerId, callbackUrl }) => callbackUrl ?? crawlerId,
  },
  storage: {
    title: 'Storage',
    postsToCallback: false,
    delivers: false,
    target: ({ crawlerId }) => crawlerId,
  },
};
