/** The functions that formulas can call, which are written with a $ before them. */
export const FORMULA_FUNCTIONS =
  `sum count max min average string substring substringBefore substringAfter lowercase uppercase length
  trim pad match contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs
  sqrt power random boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error
  assert type sort shuffle distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl
  toMillis fromMillis clone now millis`.split(/\s+/)
