// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { checkAccentColor, toShades } from '../../src/admin/branding/accent-color'
import { contrastOf, parseHexColor, toHexColor, toOklch } from '../../src/admin/branding/contrast'

const COLORS = [
  ...['#000000', '#ffffff', '#ff0000', '#00ff00', '#0000ff', '#ffff00', '#0b7272'],
  ...['#777777', '#ff9900'],
]

describe('the accent colour', () => {
  test.each(COLORS)('white text on the shades of %s is readable, and they stand out from the dark page', (color) => {
    const { light, dark } = checkAccentColor(color)
    expect(contrastOf(light, '#ffffff')).toBeGreaterThanOrEqual(4.5)
    expect(contrastOf(dark, '#ffffff')).toBeGreaterThanOrEqual(4.5)
    expect(contrastOf(dark, '#151a1a')).toBeGreaterThanOrEqual(3)
    const shades = toShades(color)
    expect(shades).toHaveLength(10)
    for (const shade of shades) expect(shade).toMatch(/^#[\da-f]{6}$/)
    for (const tint of shades.slice(3, 5)) expect(contrastOf(tint, '#151a1a')).toBeGreaterThanOrEqual(4.5)
  })

  test('a readable colour stays as it is', () => {
    expect(checkAccentColor('#0b7272')).toMatchObject({ light: '#0b7272', dark: '#0b7272', isAdjusted: false })
  })

  test.each(COLORS)('%s is the same after it was written as OKLCH', (color) => {
    expect(toHexColor(toOklch(color))).toBe(color)
  })

  test('a colour has three or six hexadecimal digits', () => {
    expect(['#FFF', '#0b7272', 'red', '#12345', '', undefined].map(parseHexColor)).toEqual([
      ...['#ffffff', '#0b7272', undefined, undefined, undefined, undefined],
    ])
  })
})
