import { Type } from '@sinclair/typebox'

/** A setting that is on or off. */
export const toggleSetting = (value: 'on' | 'off', description: string) =>
  Type.Union([Type.Literal('on'), Type.Literal('off')], { default: value, description })
/** A setting that takes a whole number. */
export const integerSetting = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: value, minimum, maximum, description })

/** Marks settings that take sizes such as 200M. */
export const SIZE = Symbol('size')
/** A setting that takes a number of bytes. */
export const sizeSetting = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({
    ...{ default: value, minimum, maximum, description: `${description}, in bytes, or with K, M or G` },
    [SIZE]: true,
  })
const SIZE_FACTORS: Record<string, number> = { K: 1 << 10, M: 1 << 20, G: 1 << 30 }

/** Returns the pattern of a list whose items are separated by commas or blanks. */
export const listPattern = (item: string) => `^(${item}([\\s,]+${item})*)?$`

/** Returns the bytes of a text such as 4000 or 200M; undefined for any other. */
export function parseSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^(-?\d{1,15})([KMG])?$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (SIZE_FACTORS[unit] ?? 1)
}
