CREATE DATABASE remembrancer;
