import { t } from 'elysia'
import { text } from '../../core/shapes'

export const SecondFactor = t.Object({
  enabled: t.Boolean(),
  recoveryCodes: t.Number({ description: 'number of unused recovery codes' }),
})
export const NewSecondFactor = t.Object({
  secret: t.String({ description: 'base32' }),
  uri: t.String({ description: 'otpauth:// URI to display as a QR code' }),
})
export const RecoveryCodes = t.Object({ recoveryCodes: t.Array(t.String(), { description: 'returned only once' }) })
export const TotpCode = t.Object({ code: text(100, 1) })
