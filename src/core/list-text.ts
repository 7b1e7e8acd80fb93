/** Returns several values as the text of one parameter: separated by commas, or a JSON array where that would tear one. */
export const writeList = (values: readonly unknown[]): string =>
  values.some((value) => /^$|,|^\[|^\s|\s$/.test(String(value))) ? JSON.stringify(values.map(String)) : values.join()

/**
 * Returns the values of a parameter that takes several: those of a JSON array, or those between commas, trimmed and
 * without empty ones. Returns undefined for a text that begins like an array and is no array of texts, numbers and
 * flags.
 */
export function readList(text: string): string[] | undefined {
  if (!text.startsWith('['))
    return text
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean)
  try {
    // A number keeps its notation: 1.10 is not 1.1, and a long one has more digits than a double.
    const keepNotation = (_: string, value: unknown, { source }: { source?: string } = {}) =>
      typeof value === 'number' ? new Written(source ?? String(value)) : value
    const list = (JSON.parse as (text: string, revive: typeof keepNotation) => unknown)(text, keepNotation)
    if (!Array.isArray(list)) return
    const values = list.map((value) =>
      typeof value === 'string' || typeof value === 'boolean'
        ? String(value)
        : value instanceof Written
          ? value.text
          : undefined,
    )
    return values.includes(undefined) ? undefined : (values as string[])
  } catch {
    return
  }
}

/** A number as it was written. */
class Written {
  constructor(readonly text: string) {}
}
