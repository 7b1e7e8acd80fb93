// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { splitIntoChunks } from '../../../src/ai/knowledge/chunker'

const chunks = (content: unknown, name?: string) => [...splitIntoChunks(content, name)].filter(Boolean)
const makeWords = (n: number, from = 0) => Array.from({ length: n }, (_, i) => `word${from + i}`).join(' ')
const MAX_CHUNK_LENGTH = 1_200
const MAX_PLACE_LENGTH = 210

describe('Markdown chunks', () => {
  test('Markdown is split at its headings, and each chunk starts with the path of headings above it', () => {
    const text = `# Guide\n\n${makeWords(50)}\n\n## Installing\n\n${makeWords(50, 100)}\n\n### On Linux\n\n${makeWords(50, 200)}\n\n## Use\n\nshort`
    expect(chunks(text)).toEqual([
      `Guide\n\n${makeWords(50)}`,
      `Guide > Installing\n\n${makeWords(50, 100)}`,
      `Guide > Installing > On Linux\n\n${makeWords(50, 200)}`,
      'Guide > Use\n\nshort',
    ])
  })

  test('small sections share a chunk, while long paragraphs get chunks of their own', () => {
    expect(chunks('# A\n\none\n\n# B\n\ntwo')).toEqual(['A\n\none\n\ntwo'])
    const [first, second] = [makeWords(100), makeWords(100, 500)]
    expect(chunks(`${first}\n\n${second}`)).toEqual([first, second])
  })

  test('underlined headings count as headings, while a rule below a list does not', () => {
    expect(chunks(`Guide\n=====\n\n${makeWords(50)}\n\nUse\n---\n\nshort`)).toEqual([
      `Guide\n\n${makeWords(50)}`,
      'Guide > Use\n\nshort',
    ])
    expect(chunks('- a list\n---\nmore')).toEqual(['- a list\n---\nmore'])
  })

  test('a fenced code block stays in one piece whatever lines it contains, even when it is never closed', () => {
    const code = '```sh\n# no heading\n\nrm -r build\n~~~\n```'
    expect(chunks(`# Cleaning\n\n${code}\n\nThat was it.`)).toEqual([`Cleaning\n\n${code}\n\nThat was it.`])
    expect(chunks('```\nnever closed\n\n# a\n')).toEqual(['```\nnever closed\n\n# a'])
  })

  test('a long code block is split between lines without losing any', () => {
    const lines = Array.from({ length: 200 }, (_, n) => `call(${n}, "some argument")`)
    const cut = chunks(`\`\`\`\n${lines.join('\n')}\n\`\`\``)
    expect(cut.length).toBeGreaterThan(3)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
    expect(cut.join('\n').split('\n')).toEqual(['```', ...lines, '```'])
  })

  test('a long paragraph is split between sentences, and each chunk repeats a little of the previous one', () => {
    const sentences = Array.from({ length: 100 }, (_, n) => `The sentence of number ${n} says empty new.`)
    const cut = chunks(sentences.join(' '))
    for (const sentence of sentences) expect(cut.some((one) => one.includes(sentence))).toBeTrue()
    for (const [n, one] of cut.entries()) {
      expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
      expect(one).toStartWith('The sentence')
      expect(one).toEndWith('.')
      if (n) expect(cut[n - 1]).toContain(one.slice(0, 40))
    }
  })

  test('text without spaces is split within the maximum length and never inside a surrogate pair', () => {
    for (const text of ['x'.repeat(10_000), '漢字'.repeat(3_000), '😀'.repeat(3_001), `a${'😀'.repeat(3_001)}`]) {
      const cut = chunks(text)
      expect(cut.join('').length).toBeGreaterThanOrEqual(text.length)
      for (const one of cut) {
        expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
        expect(one.isWellFormed()).toBeTrue()
      }
    }
    expect(chunks('日本語の文。'.repeat(500)).every((one) => one.endsWith('。'))).toBeTrue()
  })

  test('empty text and lone headings give no chunks, and a very long heading is shortened', () => {
    for (const empty of ['', ' \n\n\t\n', '# Only a heading\n\n']) expect(chunks(empty)).toEqual([])
    const [one] = chunks(`# ${'😀'.repeat(5_000)}\n\ntext`)
    expect(one!.length).toBeLessThan(MAX_CHUNK_LENGTH)
    expect(one!.isWellFormed()).toBeTrue()
  })

  test('CRLF line endings are read like LF', () => {
    expect(chunks('# A\r\n\r\none\r\ntwo\r\n')).toEqual(['A\n\none\ntwo'])
  })
})

test.each([
  ['empty lines', '\n'.repeat(100_000)],
  ['headings', '# Heading\n'.repeat(50_000)],
  ['spaces', ' '.repeat(2_000_000)],
  ['empty lines in a value', { text: '\n'.repeat(400_000) }],
  ['words without an end', { text: 'word '.repeat(100_000) }],
])('splitting a long text yields pauses regularly even when it gives few chunks: %s', (_, content) => {
  const all = [...splitIntoChunks(content)]
  expect(all.length).toBeGreaterThan(10)
  for (const one of all) expect(one === '' || one === 'text:' || one.includes('word')).toBeTrue()
})

test('a long text value in JSON is split at the ends of its sentences', () => {
  const sentences = Array.from({ length: 6_000 }, (_, n) => `This is sentence number ${n}.`)
  const cut = chunks({ text: sentences.join(' ') })
  expect(cut.filter((one) => !one.endsWith('.')).length).toBeLessThan(10)
  for (const one of sentences.filter((_, n) => n % 97 === 0))
    expect(cut.some((chunk) => chunk.includes(one))).toBeTrue()
})

describe('JSON chunks', () => {
  test('JSON records stay whole, and each value is listed with its path', () => {
    expect(chunks({ title: 'Walden', tags: ['pond', 'woods'], by: { name: 'Thoreau', born: 1817 }, none: [] })).toEqual(
      ['title: Walden\ntags[0]: pond\ntags[1]: woods\nby.name: Thoreau\nby.born: 1817\nnone: []'],
    )
    const orders = Array.from({ length: 100 }, (_, n) => ({ number: n, city: `City ${n}`, note: makeWords(20) }))
    const cut = chunks({ orders })
    for (const n of orders.keys())
      expect(cut.filter((one) => one.includes(`orders[${n}].city: City ${n}\norders[${n}].note: `))).toHaveLength(1)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
  })

  test('content counts as JSON when its file name ends in .json and it parses, and as text otherwise', () => {
    expect(chunks('{"a": [1, null]}', 'a.JSON')).toEqual(['a[0]: 1\na[1]: null'])
    expect(chunks('{"a": [1, null]}', 'a.txt')).toEqual(['{"a": [1, null]}'])
    expect(chunks('{"a": ', 'a.json')).toEqual(['{"a":'])
  })

  test('JSON of any depth is read once, and its values appear in their order', () => {
    const visits: number[] = []
    const countVisits = <Value extends object>(value: Value, n: number) =>
      new Proxy(value, {
        ownKeys(of) {
          visits[n] = (visits[n] ?? 0) + 1
          return Reflect.ownKeys(of)
        },
      })
    let value = countVisits(Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`key${n}`, `value ${n}.`])), 0)
    for (let n = 1; n <= 50; n++) value = countVisits({ before: `b${n}.`, inner: value, after: `a${n}.` } as never, n)
    const text = chunks(value).join('\n')
    expect(visits).toEqual(Array(51).fill(1))
    const listed = [...text.matchAll(/: (\w+(?: \d+)?)\./g)].map(([, what]) => what)
    const levels = Array.from({ length: 50 }, (_, n) => n + 1)
    const values = Array.from({ length: 3_000 }, (_, n) => `value ${n}`)
    const [before, after] = [levels.toReversed().map((n) => `b${n}`), levels.map((n) => `a${n}`)]
    expect(listed).toEqual([...before, ...values, ...after])
  })

  test('long JSON values are split like prose, and long keys are shortened to keep chunks in bounds', () => {
    const cut = chunks({ ['k'.repeat(5_000)]: { long: 'One sentence. '.repeat(500), list: Array(500).fill(1) } })
    expect(cut.length).toBeGreaterThan(10)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH + MAX_PLACE_LENGTH)
    expect(chunks(5)).toEqual(['5'])
    expect(chunks({})).toEqual(['{}'])
  })
})
