export const id = '019a7c7e-5d4b-7f3e-9a53-2f6d1c0b8e11'
export const otherId = '019a7c80-11c2-7a40-8d55-6f0c9e3b7a02'
export const code = '40718236'
export const credentialId = 'bXkta2V5'
export const credentialParts = {
  clientDataJSON: 'eyJ0eXBlIjoi',
  attestationObject: 'o2NmbXQ',
  authenticatorData: 'SZYN5YgO',
  signature: 'MEUCIQ',
}
/** The values that stand for those of a reader’s own things, besides texts with an ellipsis. */
export const standIns = [id, otherId, code, credentialId, ...Object.values(credentialParts)]

export const created = '2026-01-31T12:00:00.000Z'
export const later = '2026-02-28T12:00:00.000Z'
export const times = { created, updated: created }
