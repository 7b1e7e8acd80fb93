/** Returns the value of a JSON text, or the fallback for a text that is not JSON. */
export function tryParseJson(text: string, fallback?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return fallback
  }
}
