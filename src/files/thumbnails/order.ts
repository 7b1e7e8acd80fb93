import type { Dimensions } from '../dimensions'

/** How a picture is brought to a size: cut to fill it, whole in a frame of that size, or whole and no larger than it is. */
export const FITS = ['cover', 'contain', 'inside'] as const
export type Fit = (typeof FITS)[number]

export type ThumbnailFormat = 'jpeg' | 'png' | 'webp'

/** What a process is to make of the picture that it reads. `from` is the format of that picture. */
export type ThumbnailOrder = Dimensions & { fit: Fit; from: Bun.Image.Format; to: ThumbnailFormat }

/** The limits of a process: pixels of the picture, bytes of memory, and ms. */
export type ThumbnailLimits = { pixels: number; memoryBytes: number; timeMs: number }

/** Codes with which a process ends that made no thumbnail. */
export const EXIT = { unreadable: 65, tooManyPixels: 66, unsupported: 67 } as const

/** The signal by which a process that exceeds its memory or time ends itself. */
export const LIMIT_SIGNAL = 'SIGALRM'
