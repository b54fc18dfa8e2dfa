/** A field's name in requests and replies: `maxRetries` is `max_retries`. */
export function fieldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The last name of a field's path, without an index: `url` of `items[3].url`. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1).replace(/\[.*$/, '');
}
