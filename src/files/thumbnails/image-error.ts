/** Returns an error as `Bun.Image` throws it. */
export const imageError = (code: 'ERR_IMAGE_TOO_MANY_PIXELS' | 'ERR_IMAGE_DECODE_FAILED') =>
  Object.assign(new Error(code), { code })
