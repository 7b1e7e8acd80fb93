// engine: sqlite
import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const files = [...new Glob('{src,test,client}/**/*.{ts,tsx}').scanSync('.')]
  .filter((file) => !/node_modules|^client\/dist/.test(file))
  .sort()
const source = files.filter((file) => file.startsWith('src/'))
const read = (file: string) => Bun.file(file).text()

/** Words that name neither the limited thing nor its unit. */
const VAGUE_CONSTANTS = 'MOST|SLICE|AT_ONCE|PATIENCE|KEPT|LONGEST|SOON|FEW|SAID|REST|HOLD'
/** Words that name what was done to a thing instead of the thing, or that mean something else in each file. */
const VAGUE_NAMES =
  'told|shown|found|known|asked|kept|made|heard|given|said|taken|gone|whole|judge|reach|sight|way|walk|keep|look|enter|together|few'
/** Nouns that end in -ing. */
const NOUNS = ['string', 'housekeeping', 'grouping', 'pricing']

const declared = (names: string) =>
  new RegExp(`^(export )?(const|let|(async )?function\\*?|class|type) (${names})\\b`, 'm')

test('no constant, function or type has a vague name', async () => {
  for (const file of files) {
    const text = await read(file)
    expect(declared(VAGUE_CONSTANTS).exec(text)?.[0], file).toBeUndefined()
    expect(declared(VAGUE_NAMES).exec(text)?.[0], file).toBeUndefined()
  }
})

test('no function name begins with refuse; functions that throw are named assert, require or validate', async () => {
  for (const file of source) expect(declared('refuse[A-Z]\\w*').exec(await read(file))?.[0], file).toBeUndefined()
})

test('every file of src has a kebab-case name that is a noun and not generic', () => {
  for (const file of source) {
    const name = file
      .split('/')
      .at(-1)!
      .replace(/\.tsx?$/, '')
    if (/ing$/.test(name)) expect(name, file).toBeOneOf(NOUNS)
    expect(name, file).toMatch(/^[a-z\d]+(-[a-z\d]+)*(\.d)?$/)
    expect(name, file).not.toMatch(/^(utils?|helpers?|manager|service|misc|common)$/)
  }
})

/** Words that begin a fragment: such a title leaves out who does something. */
const FRAGMENT_BEGINNINGS =
  'is|are|was|were|that|of|who|whom|what|whoever|whatever|which|goes|comes|and|but|while|so|or|by|in|at|on|to|from|with|has|have|does'

test('a title of a test is a sentence that names what it is about, in at most 140 characters', async () => {
  const fragment = new RegExp(`^(${FRAGMENT_BEGINNINGS})\\b`, 'i')
  let count = 0
  for (const file of files.filter((file) => file.endsWith('.test.ts'))) {
    const text = await read(file)
    for (const [, kind, quote, title = ''] of text.matchAll(
      /^\s*(test|describe)(?:\.\w+)*(?:\([^)\n]*\))?\((?:\n\s*)?(['"`])((?:(?!\2)[^\\\n]|\\.)+)\2/gm,
    )) {
      if (quote === '`' && title.startsWith('${')) continue
      count++
      expect(title, file).not.toMatch(fragment)
      expect(title.length, `${file}: ${title}`).toBeLessThanOrEqual(140)
      if (kind === 'test' && !title.includes('%')) expect(title, file).toContain(' ')
    }
  }
  expect(count).toBeGreaterThan(2_000)
})
