import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { assignLabels, toFileStems, toLabel } from '../../src/definitions/labels'

const stemsOf = (...labels: string[]) => [...toFileStems(labels).values()]

describe('toFileStems', () => {
  test('keeps names that every file system takes, also in other alphabets', () => {
    expect(stemsOf('Orders', 'préférences', 'send order 2')).toEqual(['Orders', 'préférences', 'send order 2'])
  })

  test('encodes what a file system may refuse: separators, dots at the ends, control characters and names of devices', () => {
    expect(stemsOf('a/b', '..', 'x.', ' y', 'con', 'NUL.txt', 'a\tb', '50%')).toEqual([
      ...['a%2Fb', '%2E%2E', 'x%2E', '%20y', '%63on', '%4EUL.txt', 'a%09b', '50%25'],
    ])
  })

  test('encodes capitals of names that differ only by them', () => {
    expect(stemsOf('Button', 'button', 'Other')).toEqual(['%42utton', 'button', 'Other'])
    expect(stemsOf('É', 'é')).toEqual(['%C3%89', 'é'])
  })

  test('returns different stems for different labels, whatever they are, also where letters are folded', () => {
    const name = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
      fc.constantFrom('CON', 'con', 'a', 'A', 'é', 'É'),
    )
    fc.assert(
      fc.property(fc.array(name, { maxLength: 12 }), (names) => {
        const labels = assignLabels(names)
        const stems = [...toFileStems(labels)]
        expect(new Set(stems.map(([, stem]) => stem.normalize('NFC').toLowerCase())).size).toBe(labels.length)
        for (const [label, stem] of stems) {
          expect(toLabel(stem)).toBe(label)
          expect(toLabel(stem.normalize('NFD'))).toBe(label)
          expect(Buffer.byteLength(stem)).toBeLessThan(220)
          expect(stem).not.toMatch(/[/\\:*?"<>|\p{Cc}]|^[. ]|[. ]$/u)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('assignLabels', () => {
  test('numbers names that several things have, and passes over labels that are taken', () => {
    expect(assignLabels(['a', 'a', 'a~2', 'b'], ['b'])).toEqual(['a', 'a~2', 'a~2~2', 'b~2'])
  })

  test('cuts a long name and tells it apart by its hash', () => {
    const [first, second] = assignLabels([`${'長'.repeat(180)}1`, `${'長'.repeat(180)}2`])
    expect(first).toMatch(/^長{53}~[0-9a-f]{8}$/)
    expect(first).not.toBe(second)
  })
})

test('toLabel returns undefined for a name that is not percent-encoded as it should be', () => {
  expect(toLabel('50%')).toBeUndefined()
})
