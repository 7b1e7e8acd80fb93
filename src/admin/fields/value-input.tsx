import type { InputProps } from './field-kind'
import { fieldKinds } from './index'

/** The input for the value of a field, or for its list of values. */
export function ValueInput(props: InputProps) {
  const { Input, ListInput } = fieldKinds[props.field.type]
  return props.field.multi ? <ListInput {...props} /> : <Input {...props} />
}
