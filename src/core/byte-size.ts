/** The units of sizes, each 1,024 times the one before, as texts such as 200M and people write them. */
const FACTOR = 1_024
const LETTERS = ['', 'K', 'M', 'G', 'T']
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Returns the bytes of a text such as 4000 or 200M; undefined for any other. */
export function parseSize(text: string): number | undefined {
  const [, digits, letter = ''] = /^(-?\d{1,15})([KMGT]?)$/i.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * FACTOR ** LETTERS.indexOf(letter.toUpperCase())
}

/** Returns a size as `parseSize` reads it, exactly: 2G, or 1500. */
export function toSizeText(bytes: number): string {
  let step = 0
  while (bytes > 0 && step < LETTERS.length - 1 && bytes % FACTOR ** (step + 1) === 0) step++
  return `${bytes / FACTOR ** step}${LETTERS[step]}`
}

/** Returns a size as people read it, such as `1.2 MiB`, with digits of the locale; undefined for that of the browser. */
export function formatBytes(bytes: number, locale: string | undefined): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(FACTOR)))
  return `${(bytes / FACTOR ** step).toLocaleString(locale, { maximumFractionDigits: 1 })} ${UNITS[step]}`
}
