import { describe, expect, test } from 'bun:test'
import { splitIntoChunks } from '../../../src/ai/knowledge/chunker'

const chunks = (content: unknown, name?: string) => [...splitIntoChunks(content, name)].filter(Boolean)
const makeWords = (n: number, from = 0) => Array.from({ length: n }, (_, i) => `word${from + i}`).join(' ')
const MAX_CHUNK_LENGTH = 1_200
const MAX_PLACE_LENGTH = 210

describe('Markdown', () => {
  test('is cut where parts begin, each with the headings that it stands under', () => {
    const text = `# Guide\n\n${makeWords(50)}\n\n## Installing\n\n${makeWords(50, 100)}\n\n### On Linux\n\n${makeWords(50, 200)}\n\n## Use\n\nshort`
    expect(chunks(text)).toEqual([
      `Guide\n\n${makeWords(50)}`,
      `Guide > Installing\n\n${makeWords(50, 100)}`,
      `Guide > Installing > On Linux\n\n${makeWords(50, 200)}`,
      'Guide > Use\n\nshort',
    ])
  })

  test('keeps small parts together, and what belongs together apart from what is large', () => {
    expect(chunks('# A\n\none\n\n# B\n\ntwo')).toEqual(['A\n\none\n\ntwo'])
    const [first, second] = [makeWords(100), makeWords(100, 500)]
    expect(chunks(`${first}\n\n${second}`)).toEqual([first, second])
  })

  test('knows headings by their underline, too', () => {
    expect(chunks(`Guide\n=====\n\n${makeWords(50)}\n\nUse\n---\n\nshort`)).toEqual([
      `Guide\n\n${makeWords(50)}`,
      'Guide > Use\n\nshort',
    ])
    expect(chunks('- a list\n---\nmore')).toEqual(['- a list\n---\nmore'])
  })

  test('takes a block of code as one, whatever stands in it', () => {
    const code = '```sh\n# no heading\n\nrm -r build\n~~~\n```'
    expect(chunks(`# Cleaning\n\n${code}\n\nThat was it.`)).toEqual([`Cleaning\n\n${code}\n\nThat was it.`])
    expect(chunks('```\nnever closed\n\n# a\n')).toEqual(['```\nnever closed\n\n# a'])
  })

  test('cuts long code between lines, and loses none', () => {
    const lines = Array.from({ length: 200 }, (_, n) => `call(${n}, "some argument")`)
    const cut = chunks(`\`\`\`\n${lines.join('\n')}\n\`\`\``)
    expect(cut.length).toBeGreaterThan(3)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
    expect(cut.join('\n').split('\n')).toEqual(['```', ...lines, '```'])
  })

  test('cuts a long paragraph between sentences, and repeats a little of what came before', () => {
    const sentences = Array.from({ length: 100 }, (_, n) => `The sentence of number ${n} says nothing new.`)
    const cut = chunks(sentences.join(' '))
    for (const sentence of sentences) expect(cut.some((one) => one.includes(sentence))).toBeTrue()
    for (const [n, one] of cut.entries()) {
      expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
      expect(one).toStartWith('The sentence')
      expect(one).toEndWith('.')
      if (n) expect(cut[n - 1]).toContain(one.slice(0, 40))
    }
  })

  test('of one endless word, or of signs without spaces, is cut all the same, and never within a letter', () => {
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

  test('of nothing has no chunks, and endless headings stay short', () => {
    for (const nothing of ['', ' \n\n\t\n', '# Only a heading\n\n']) expect(chunks(nothing)).toEqual([])
    const [one] = chunks(`# ${'😀'.repeat(5_000)}\n\ntext`)
    expect(one!.length).toBeLessThan(MAX_CHUNK_LENGTH)
    expect(one!.isWellFormed()).toBeTrue()
  })

  test('of Windows and of old texts is read alike', () => {
    expect(chunks('# A\r\n\r\none\r\ntwo\r\n')).toEqual(['A\n\none\ntwo'])
  })
})

test.each([
  ['empty lines', '\n'.repeat(100_000)],
  ['headings', '# Heading\n'.repeat(50_000)],
  ['spaces', ' '.repeat(2_000_000)],
  ['empty lines in a value', { text: '\n'.repeat(400_000) }],
  ['words without an end', { text: 'word '.repeat(100_000) }],
])('however long nothing comes of a text, there is a pause now and then: %s', (_, content) => {
  const all = [...splitIntoChunks(content)]
  expect(all.length).toBeGreaterThan(10)
  for (const one of all) expect(one === '' || one === 'text:' || one.includes('word')).toBeTrue()
})

test('a long text of sentences is cut at their ends, wherever it is looked at', () => {
  const sentences = Array.from({ length: 6_000 }, (_, n) => `This is sentence number ${n}.`)
  const cut = chunks({ text: sentences.join(' ') })
  expect(cut.filter((one) => !one.endsWith('.')).length).toBeLessThan(10)
  for (const one of sentences.filter((_, n) => n % 97 === 0))
    expect(cut.some((chunk) => chunk.includes(one))).toBeTrue()
})

describe('JSON', () => {
  test('has its records kept whole, each value with the way to it', () => {
    expect(chunks({ title: 'Walden', tags: ['pond', 'woods'], by: { name: 'Thoreau', born: 1817 }, none: [] })).toEqual(
      ['title: Walden\ntags[0]: pond\ntags[1]: woods\nby.name: Thoreau\nby.born: 1817\nnone: []'],
    )
    const orders = Array.from({ length: 100 }, (_, n) => ({ number: n, city: `City ${n}`, note: makeWords(20) }))
    const cut = chunks({ orders })
    for (const n of orders.keys())
      expect(cut.filter((one) => one.includes(`orders[${n}].city: City ${n}\norders[${n}].note: `))).toHaveLength(1)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH)
  })

  test('is known by the name of the file, and is text where it is none after all', () => {
    expect(chunks('{"a": [1, null]}', 'a.JSON')).toEqual(['a[0]: 1\na[1]: null'])
    expect(chunks('{"a": [1, null]}', 'a.txt')).toEqual(['{"a": [1, null]}'])
    expect(chunks('{"a": ', 'a.json')).toEqual(['{"a":'])
  })

  test('is looked through once, however deep its largest parts lie, and told in its order', () => {
    const looks: number[] = []
    const watched = <Value extends object>(value: Value, n: number) =>
      new Proxy(value, {
        ownKeys(of) {
          looks[n] = (looks[n] ?? 0) + 1
          return Reflect.ownKeys(of)
        },
      })
    let value = watched(Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`key${n}`, `value ${n}.`])), 0)
    for (let n = 1; n <= 50; n++) value = watched({ before: `b${n}.`, inner: value, after: `a${n}.` } as never, n)
    const text = chunks(value).join('\n')
    expect(looks).toEqual(Array(51).fill(1))
    const said = [...text.matchAll(/: (\w+(?: \d+)?)\./g)].map(([, what]) => what)
    const levels = Array.from({ length: 50 }, (_, n) => n + 1)
    const values = Array.from({ length: 3_000 }, (_, n) => `value ${n}`)
    const [before, after] = [levels.toReversed().map((n) => `b${n}`), levels.map((n) => `a${n}`)]
    expect(said).toEqual([...before, ...values, ...after])
  })

  test('with long texts has them cut as prose, and with long keys stays in bounds', () => {
    const cut = chunks({ ['k'.repeat(5_000)]: { long: 'One sentence. '.repeat(500), list: Array(500).fill(1) } })
    expect(cut.length).toBeGreaterThan(10)
    for (const one of cut) expect(one.length).toBeLessThanOrEqual(MAX_CHUNK_LENGTH + MAX_PLACE_LENGTH)
    expect(chunks(5)).toEqual(['5'])
    expect(chunks({})).toEqual(['{}'])
  })
})
