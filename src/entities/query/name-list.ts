/** Returns the names in a comma-separated text, trimmed and without empty ones. */
export const parseNames = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
