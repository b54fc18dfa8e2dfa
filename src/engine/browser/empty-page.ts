import type { CdpConnection } from './cdp-connection.ts';

/** The value of an expression of JavaScript on a new, empty page of the browser. */
export async function evaluateOnEmptyPage(
  cdp: CdpConnection,
  expression: string,
): Promise<unknown> {
  const { targetId } = await cdp.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
  const { result } = await cdp.send(
    'Runtime.evaluate',
    { expression, returnByValue: true },
    { sessionId },
  );
  return result.value;
}
