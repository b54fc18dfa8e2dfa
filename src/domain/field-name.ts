/** A field's name in requests and replies: `maxRetries` is `max_retries`. */
export function fieldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
