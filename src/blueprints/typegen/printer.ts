// Prints TypeScript around untrusted text: no text can end its literal or its comment.

const INVISIBLE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}]/gu
const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Returns the literal of a text, a number, true, false or null. */
export const printLiteral = (value: string | number | boolean | null) =>
  JSON.stringify(value).replace(INVISIBLE_CHARACTERS, (one) => one.split('').map(escapeUnit).join(''))

/** Returns the name of a property, quoted if needed. */
export const printProperty = (key: string) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : printLiteral(key))

/**
 * Returns a comment of these paragraphs, or '' without any. A directive of the compiler (such as `ts-ignore`) is never
 * in the last line, where the compiler would obey it.
 */
export function printComment(...paragraphs: (string | undefined)[]): string {
  const lines = paragraphs
    .filter((paragraph) => paragraph?.trim())
    .flatMap((paragraph, index) => [...(index ? [''] : []), ...paragraph!.trim().split(/\r\n|[\n\r\u2028\u2029]/)])
    .map((line) => line.replace(INVISIBLE_CHARACTERS, ' ').replaceAll('*/', '*\\/').trimEnd())
  const [first = ''] = lines
  if (lines.length < 2 && !first.includes('@')) return first && `/** ${first} */\n`
  return `/**\n${lines.map((line) => ` *${line && ` ${line}`}\n`).join('')} */\n`
}

/** Returns a text with every line indented. */
export const indent = (text: string) => text.replace(/^(?=.)/gm, '  ')

/** Returns an object type with these members. */
export const printObjectType = (members: string[]) =>
  members.length ? `{\n${indent(members.map((member) => `${member}\n`).join(''))}}` : '{}'
