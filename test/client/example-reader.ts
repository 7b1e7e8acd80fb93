import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Glob } from 'bun'

const folder = join(import.meta.dir, '../../client/src')

export type Example = { name: string; member: string; file: string; code: string }

/** Returns the examples in the comments of the client, in the order in which they stand there. */
export function readExamples(): Example[] {
  const counts = new Map<string, number>()
  return [...new Glob('*.ts').scanSync(folder)].sort().flatMap((path) => {
    const [text, file] = [readFileSync(join(folder, path), 'utf8'), basename(path, '.ts')]
    return [...text.matchAll(/@example\n([\s\S]*?)\*\/\n\s*(?:export |async |const |function |class |\*)*(\w+)/g)].map(
      ([, comment = '', member = '']) => {
        const key = `${file}.${member}`
        counts.set(key, (counts.get(key) ?? 0) + 1)
        const name = counts.get(key) === 1 ? key : `${key} ${counts.get(key)}`
        return { name, member, file, code: comment.replace(/^ *\* ?/gm, '').trim() }
      },
    )
  })
}

/** The names of all functions of a client, as often as they occur. */
export const namesOfFunctions = (value: object): string[] =>
  Object.entries(value).flatMap(([name, member]) => {
    if (typeof member === 'function') return [name]
    return member && typeof member === 'object' ? namesOfFunctions(member) : []
  })
