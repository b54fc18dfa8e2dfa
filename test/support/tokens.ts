/** Tokens that every test app has. */
export const NORMAL = 'normal-token-for-tests';
export const JAVASCRIPT = 'javascript-token-for-tests';
export const ADMIN = 'admin-token-for-tests';
