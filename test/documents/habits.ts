// Counts habits of code and prose that shall become fewer. `bun test/documents/habits.ts` writes the counts of today to habits.json.
import { Glob } from 'bun'

export const RECORD = 'test/documents/habits.json'

const CODE_HABITS = {
  'lines that begin with ...{': /^\s*\.\.\.\{ /gm,
  'declarations as tuples': /^\s*(?:const|let) \[[^\]]+\](?:: [^=]+)? = \[/gm,
  'as never': /\bas never\b/g,
}

/** Phrases that a native writer rarely uses in a product. */
const PROSE_HABITS = {
  'who or what as a subject': /(?:^|[.:!?] +)(?:Who|What|Whoever|Whatever)\b(?![^.!?\n]*\?)/gm,
  'at once': /\bat once\b/gi,
  ', too': /, too\b/g,
  'is kept': /\b(?:is|are|was|were|be) kept\b/g,
  stands: /\bstands?\b/g,
  'goes, comes': /\b(?:goes|comes|went|came)\b/g,
  nobody: /\b(?:nobody|somebody)\b/gi,
  'nothing is': /\bnothing (?:is|was)\b/gi,
  meanwhile: /\bmeanwhile\b/gi,
  'of which, by which': /\b(?:of|by|in|with|at) which\b/g,
}

/** Literals of source code that are sentences, or parts of some. */
const LITERALS = /(['"`])((?:(?!\1)[^\\\n]|\\.){12,}?)\1/g
const isProse = (text: string) => /^[\p{L}\d`"$<{-][^<>{};=]*(?: [^ ]+){2,}$/u.test(text.replace(/\$\{[^}]*\}/g, 'x'))
const toLiterals = (source: string) =>
  [...source.replace(/^import .*$/gm, '').matchAll(LITERALS)].map(([, , text = '']) => text).filter(isProse)
const toTitles = (source: string) =>
  [
    ...source.matchAll(
      /^\s*(?:test|describe)(?:\.\w+)*(?:\([^)\n]*\))?\((?:\n\s*)?(['"`])((?:(?!\1)[^\\\n]|\\.)+)\1/gm,
    ),
  ].map(([, , title = '']) => title)
const withoutCode = (markdown: string) => [markdown.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, 'x')]
const toHeading = (markdown: string) => [/^# \d+ (.*)$/m.exec(markdown)?.[1] ?? '']

/** What is read, by kind of text: its files, and how its texts are found in one. */
const KINDS: Record<string, { files: string[]; without?: RegExp; read(source: string): string[] }> = {
  'server: messages and descriptions': {
    files: ['src/**/*.ts'],
    without: /^src\/(admin|commands)\//,
    read: toLiterals,
  },
  'command line': { files: ['src/commands/**/*.ts'], read: toLiterals },
  'admin page': { files: ['src/admin/**/*.{ts,tsx}'], read: toLiterals },
  guides: { files: ['docs/guides/*.md'], read: withoutCode },
  'operations and reference': { files: ['docs/{operations,reference}/*.md'], read: withoutCode },
  architecture: { files: ['docs/architecture/*.md'], read: withoutCode },
  decisions: { files: ['docs/adr/0*.md'], read: withoutCode },
  'titles of decisions': { files: ['docs/adr/0*.md'], read: toHeading },
  'README, CHANGELOG, SECURITY, CONTRIBUTING': { files: ['*.md'], read: withoutCode },
  'titles of tests': { files: ['test/**/*.test.{ts,tsx}'], read: toTitles },
}

export type Habits = Record<string, Record<string, number>>

/** Returns how often each habit occurs: in code in all, in prose per thousand words of each kind of text. */
export async function countHabits(): Promise<Habits> {
  const habits: Habits = { code: {} }
  const sources = await Promise.all(
    [...new Glob('src/**/*.{ts,tsx}').scanSync('.')].map((file) => Bun.file(file).text()),
  )
  const count = (texts: string[], habit: RegExp) =>
    texts.reduce((sum, text) => sum + [...text.matchAll(habit)].length, 0)
  for (const [name, habit] of Object.entries(CODE_HABITS)) habits.code![name] = count(sources, habit)
  for (const [kind, { files, without, read }] of Object.entries(KINDS)) {
    const paths = files
      .flatMap((pattern) => [...new Glob(pattern).scanSync('.')])
      .filter((path) => !without?.test(path))
    const texts = (await Promise.all(paths.map(async (path) => read(await Bun.file(path).text())))).flat()
    const words = texts.reduce((sum, text) => sum + text.split(/\s+/).length, 0)
    const perThousand = Object.entries(PROSE_HABITS).map(([name, habit]) => [
      name,
      (count(texts, habit) / words) * 1_000,
    ])
    habits[kind] = Object.fromEntries(perThousand.map(([name, rate]) => [name, Math.ceil(Number(rate) * 100) / 100]))
  }
  return habits
}

if (import.meta.main) await Bun.write(RECORD, `${JSON.stringify(await countHabits(), null, 2)}\n`)
