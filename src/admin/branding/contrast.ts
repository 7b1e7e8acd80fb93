/** A colour as red, green and blue, each from 0 to 1. */
type Rgb = readonly [red: number, green: number, blue: number]

/** A colour as lightness (0 to 1), chroma and hue (radians), in which equal steps look equal (OKLCH). */
export type Oklch = { lightness: number; chroma: number; hue: number }

/** Returns a colour that is written as `#rrggbb` or `#rgb` in its long form, or undefined. */
export function parseHexColor(text: unknown): string | undefined {
  const [, digits] = /^#((?:[\da-f]{3}){1,2})$/i.exec(String(text).trim()) ?? []
  if (!digits) return
  return `#${digits.length === 3 ? digits.replace(/./g, '$&$&') : digits}`.toLowerCase()
}

const toRgb = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255) as unknown as Rgb

const toLinear = (part: number) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
const fromLinear = (part: number) => (part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055)

/** Returns the relative luminance of a colour, from 0 to 1 (WCAG 2). */
function luminanceOf(hex: string): number {
  const [red, green, blue] = toRgb(hex).map(toLinear) as unknown as Rgb
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Returns the contrast of two colours, from 1 to 21 (WCAG 2). */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Returns a colour as OKLCH, by the matrices of Björn Ottosson's "A perceptual color space". */
export function toOklch(hex: string): Oklch {
  const [red, green, blue] = toRgb(hex).map(toLinear) as unknown as Rgb
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  const a = 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s
  const b = 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s
  return {
    lightness: 0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    chroma: Math.hypot(a, b),
    hue: Math.atan2(b, a),
  }
}

function toLinearRgb({ lightness, chroma, hue }: Oklch): Rgb {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)]
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]
}

/** Returns an OKLCH colour as `#rrggbb`; one that screens cannot show loses chroma. */
export function toHexColor(color: Oklch): string {
  const linear = toLinearRgb(color)
  const isShown = linear.every((part) => part >= -0.001 && part <= 1.001)
  if (!isShown && color.chroma > 0.001) return toHexColor({ ...color, chroma: color.chroma * 0.95 })
  const parts = linear.map((part) => Math.round(255 * fromLinear(Math.min(1, Math.max(0, part)))))
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
