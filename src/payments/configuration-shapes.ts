import { t } from 'elysia'
import { jsonObject, strictObject } from '../core/shapes'

export const PaymentsConfiguration = t.Object({
  key: t.Literal('payments-configuration'),
  metadata: jsonObject,
  warnings: t.Optional(
    t.Array(t.Object({ path: t.String(), message: t.String() }), {
      description: 'such as prices that the connected provider cannot charge',
    }),
  ),
})
export const PaymentsConfigurationChange = strictObject({ metadata: t.Optional(jsonObject) })
