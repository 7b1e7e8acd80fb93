import type { Static, TObject } from '@sinclair/typebox'
import type { FieldError } from '../../core/problem'

/** A kind of trigger: what is said of one besides its kind, and what is wrong with it that its shape does not say. */
export type TriggerKind<Shape extends TObject> = {
  shape: Shape
  /** Paths are those in the trigger. */
  validate?(trigger: Static<Shape>): FieldError[]
}
