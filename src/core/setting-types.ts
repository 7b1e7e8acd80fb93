import { Type } from '@sinclair/typebox'

/** A setting that is on or off. */
export const toggleSetting = (value: 'on' | 'off', description: string) =>
  Type.Union([Type.Literal('on'), Type.Literal('off')], { default: value, description })
/** A setting that takes a whole number. */
export const integerSetting = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: value, minimum, maximum, description })

/** A setting that is any text, or empty. */
export const textSetting = (description: string) => Type.String({ default: '', description })
/** The same for a password or a key, which is never shown. */
export const secretSetting = (description: string) => Type.String({ default: '', secret: true, description })

/** Marks settings that take sizes such as 200M. */
export const SIZE = Symbol('size')
/** A setting that takes a number of bytes. */
export const sizeSetting = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({
    ...{ default: value, minimum, maximum, description: `${description} (bytes, or with K, M, G or T)` },
    [SIZE]: true,
  })

/** Returns the pattern of a list whose items are separated by commas or blanks. */
export const listPattern = (item: string) => `^(${item}([\\s,]+${item})*)?$`

/** Returns the items of a setting that is a list. */
export const parseList = (list: string): string[] => list.split(/[\s,]+/).filter(Boolean)

/** Returns the files of a setting that names some. */
export const parseFileList = (list: string): string[] => list.split(',').flatMap((file) => file.trim() || [])
