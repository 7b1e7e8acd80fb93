import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const files = [...new Glob('{src,test}/**/*.ts').scanSync('.')].filter((file) => !file.includes('node_modules')).sort()
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
    const name = file.split('/').at(-1)!.replace('.ts', '')
    if (/ing$/.test(name)) expect(name, file).toBeOneOf(NOUNS)
    expect(name, file).toMatch(/^[a-z\d]+(-[a-z\d]+)*(\.d)?$/)
    expect(name, file).not.toMatch(/^(utils?|helpers?|manager|service|misc|common)$/)
  }
})
