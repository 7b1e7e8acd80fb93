const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Returns the text of XML without references to characters. */
const decodeText = (text: string) =>
  text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (all, decimal, hex, name) =>
    name ? (ENTITIES[name] ?? all) : String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16)),
  )

/**
 * Returns what is in each element of a name. Answers of stores do not put an element into one of the same name, and have
 * neither comments nor CDATA.
 */
export const readElements = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<(?:\\w+:)?${name}(?:\\s[^>]*)?>([^]*?)</(?:\\w+:)?${name}>`, 'g'))].map(
    ([, inner]) => inner!,
  )

/** Returns the text of the first element of a name, or undefined when there is none. */
export function readText(xml: string, name: string): string | undefined {
  const [inner] = readElements(xml, name)
  return inner === undefined ? undefined : decodeText(inner)
}
