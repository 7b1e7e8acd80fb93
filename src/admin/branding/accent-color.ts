import type { MantineColorsTuple } from '@mantine/core'
import { contrastOf, type Oklch, toHexColor, toOklch } from './contrast'

const WHITE = '#ffffff'
/** The background of the page in its dark look, as in `page.css`. */
const DARK_SURFACE = '#151a1a'
/** AA asks for 4.5; tints of the colour are behind some texts, which takes a part of the contrast. */
const MIN_CONTRAST_WITH_WHITE = 5.2
/** AA for shapes, such as a button or the ring around the focus. */
const MIN_CONTRAST_WITH_DARK = 3
const LIGHTNESS_STEP = 0.004

/** The shades that fill buttons, as `primaryShade` of the theme. */
export const ACCENT_SHADES = { light: 7, dark: 6 } as const

/** Returns the nearest colour of the same hue that white text can be read on; in the dark look also one that stands out. */
function adjustLightness(color: Oklch, isDarkLook: boolean): string {
  let { lightness } = color
  const toHex = () => toHexColor({ ...color, lightness })
  while (contrastOf(toHex(), WHITE) < MIN_CONTRAST_WITH_WHITE) lightness -= LIGHTNESS_STEP
  while (isDarkLook && contrastOf(toHex(), DARK_SURFACE) < MIN_CONTRAST_WITH_DARK) lightness += LIGHTNESS_STEP
  return toHex()
}

/** An accent colour as the page uses it: its contrast with white, and what each look makes of it. */
export type AccentCheck = { contrast: number; light: string; dark: string; isAdjusted: boolean }

/** Returns what the page makes of an accent colour, so that its contrast is at least AA. */
export function checkAccentColor(accent: string): AccentCheck {
  const color = toOklch(accent)
  const contrast = contrastOf(accent, WHITE)
  const isReadable = contrast >= MIN_CONTRAST_WITH_WHITE
  const standsOut = contrastOf(accent, DARK_SURFACE) >= MIN_CONTRAST_WITH_DARK
  return {
    contrast,
    light: isReadable ? accent : adjustLightness(color, false),
    dark: isReadable && standsOut ? accent : adjustLightness(color, true),
    isAdjusted: !isReadable || !standsOut,
  }
}

/** Lightness and share of the chroma of the shades, the lightest first. */
const SHADES = [
  [0.972, 0.12],
  [0.935, 0.25],
  [0.87, 0.5],
  [0.8, 0.75],
  [0.735, 0.9],
  [0.67, 1],
] as const

/** Returns the ten shades of an accent colour, of which `ACCENT_SHADES` fill buttons. */
export function toShades(accent: string): MantineColorsTuple {
  const color = toOklch(accent)
  const { light, dark } = checkAccentColor(accent)
  const tints = SHADES.map(([lightness, share]) => toHexColor({ ...color, lightness, chroma: color.chroma * share }))
  const base = toOklch(light)
  const darker = [0.86, 0.72].map((share) => toHexColor({ ...base, lightness: base.lightness * share }))
  return [...tints, dark, light, ...darker] as unknown as MantineColorsTuple
}
