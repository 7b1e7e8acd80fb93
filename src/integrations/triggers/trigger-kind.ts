import type { Static, TObject } from '@sinclair/typebox'
import type { FieldError } from '../../core/problem'

/** A kind of trigger: the shape of its fields besides `kind`, and further validation. */
export type TriggerKind<Shape extends TObject> = { shape: Shape } & TriggerValidation<Static<Shape>>

export type TriggerValidation<Fields> = {
  /** Returns errors that the shape cannot express. Paths are relative to the trigger. */
  validate?(trigger: Fields): FieldError[]
}
