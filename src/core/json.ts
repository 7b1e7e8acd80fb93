/** Returns the value of a JSON text, or the fallback for a text that is not JSON. */
export function tryParseJson(text: string, fallback?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return fallback
  }
}

/** Returns the value at a dotted path, or undefined. */
export function readPath(value: unknown, path: string): unknown {
  let part = value
  for (const key of path.split('.')) {
    if (part === null || typeof part !== 'object' || !Object.hasOwn(part, key)) return
    part = (part as Record<string, unknown>)[key]
  }
  return part
}
