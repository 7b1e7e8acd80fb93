/** Words of TypeScript for what others have written: whatever is in them, they stay what they are meant to be. */

const INVISIBLE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}]/gu
const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text, a number, true, false or null, as its literal. */
export const printLiteral = (value: string | number | boolean | null) =>
  JSON.stringify(value).replace(INVISIBLE_CHARACTERS, (one) => one.split('').map(escapeUnit).join(''))

/** The name of a property. */
export const printProperty = (key: string) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : printLiteral(key))

/**
 * A comment of these paragraphs; empty where nothing is said. What could be an order to the compiler (a `ts-ignore`) is not
 * in the last line, where it would be obeyed.
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

/** The lines of a text, further to the right. */
export const indent = (text: string) => text.replace(/^(?=.)/gm, '  ')

/** An object type of these members. */
export const printObjectType = (members: string[]) =>
  members.length ? `{\n${indent(members.map((member) => `${member}\n`).join(''))}}` : '{}'
