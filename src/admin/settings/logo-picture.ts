/** Pictures are kept in the configuration, of which each visitor loads all. */
const MAX_CHARACTERS = 24_000
const SIZES_PX = [96, 64, 48]

function readAsDataUrl(file: Blob): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(String(reader.result))
  reader.onerror = () => reject(new Error('The browser cannot read this file.'))
  reader.readAsDataURL(file)
  return promise
}

async function loadImage(file: Blob): Promise<HTMLImageElement> {
  const image = new Image()
  image.src = URL.createObjectURL(file)
  try {
    await image.decode()
  } catch {
    throw new Error('This file is not a picture that the browser can show.')
  } finally {
    URL.revokeObjectURL(image.src)
  }
  return image
}

function drawScaled(image: HTMLImageElement, height: number): string {
  const ratio = (image.naturalWidth || height) / (image.naturalHeight || height)
  const canvas = document.createElement('canvas')
  canvas.height = height
  canvas.width = Math.max(1, Math.round(height * Math.min(ratio, 4)))
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas.toDataURL('image/png')
}

/** Returns a picture as a data URL of at most 24,000 characters; a larger one is scaled down. @throws Error with a sentence */
export async function toLogoPicture(file: File): Promise<string> {
  const image = await loadImage(file)
  const original = await readAsDataUrl(file)
  if (original.length <= MAX_CHARACTERS) return original
  const scaled = SIZES_PX.map((size) => drawScaled(image, size)).find((url) => url.length <= MAX_CHARACTERS)
  if (!scaled) throw new Error('This picture is too detailed for a logo. Choose a simpler or a smaller one.')
  return scaled
}
