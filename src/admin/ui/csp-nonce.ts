/** Returns the nonce that the policy of the page asks of style sheets. */
export const readCspNonce = (): string => document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.nonce ?? ''
